// Keeps a page up to date: fetches it again and exchanges its content, unless somebody is busy in it.
"use strict";
const PERIOD_MS = 5000;
const SHARE = 10; // A slow server is asked less often: at most a tenth of the time.

async function refresh() {
  const main = document.querySelector("main");
  const isRead = main.contains(document.activeElement) || main.querySelector("details[open]") !== null;
  const isBusy = document.hidden || isRead || !document.getSelection().isCollapsed;
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
  const started = performance.now();
  try {
    await refresh();
  } catch {
    // The server does not answer now; the next round asks again.
  }
  setTimeout(loop, Math.max(PERIOD_MS, SHARE * (performance.now() - started)));
}

setTimeout(loop, PERIOD_MS);
