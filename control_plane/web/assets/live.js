// Keeps a page up to date: fetches it again and exchanges its content, unless somebody is busy in it.
"use strict";
const PERIOD_MS = 5000;

async function refresh() {
  const main = document.querySelector("main");
  const isBusy = document.hidden || main.contains(document.activeElement) || !document.getSelection().isCollapsed;
  if (isBusy) return;
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok) {
    location.reload();
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
  if (fresh && fresh.innerHTML !== main.innerHTML) main.replaceWith(document.adoptNode(fresh));
}

async function loop() {
  try {
    await refresh();
  } catch {
    // The server does not answer now; the next round asks again.
  }
  setTimeout(loop, PERIOD_MS);
}

setTimeout(loop, PERIOD_MS);
