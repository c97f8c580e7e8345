"""A browser for the tests of the pages: what it sends, and what it would make of an answer."""

from html.parser import HTMLParser

from starlette.testclient import TestClient

from control_plane.records import Scope
from control_plane.web import rendering

ORIGIN = {"Origin": "http://testserver"}


class Page(HTMLParser):
    """What a browser would make of a page: its tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def sign_in(world, scope: Scope = Scope.READER, **fields: str) -> TestClient:
    """A browser that is signed in."""
    browser = TestClient(world.assembly.app, raise_server_exceptions=False, follow_redirects=False)
    answer = browser.post("/sign-in", data={"token": world.tokens[scope], **fields}, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    return browser


def check_frame(answer) -> None:
    """What holds for every page."""
    for name, value in rendering.HEADERS.items():
        assert answer.headers[name] == value
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(answer.text)
    assert len(page.of("h1")) == len(page.of("title")) == len(page.of("main")) == 1
    assert page.of("html") == [{"lang": "en"}]
    assert not page.of("style")
    assert all(set(tag) == {"src", "defer"} for tag in page.of("script"))
    assert not [name for _, tag in page.tags for name in tag if name == "style" or name.startswith("on")]
    assert len(page.of("caption")) == len(page.of("table"))
    for tag in (*page.of("link"), *page.of("script"), *page.of("img")):
        assert (tag.get("href") or tag.get("src") or "").startswith("/assets/")
