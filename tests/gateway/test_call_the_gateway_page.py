"""The page for callers has every path and every code, with the status that they are answered with."""

import json
import re

import pytest

from gateway.envoy_replies import local_replies
from gateway.paths import ENGINE_PATHS
from gateway.refusals import Reason, refuse


@pytest.fixture(scope="module")
def page(checkout):
    return (checkout / "docs" / "guides" / "call-the-gateway.md").read_text(encoding="utf-8")


def test_every_path_stands_there_with_its_word(page):
    stated = dict(re.findall(r"^\| `(/[^`]+)` \| [^|]+ \| `([a-z-]+)` \|$", page, re.MULTILINE))
    assert stated == {path: operation.value for path, operation in ENGINE_PATHS.items()}


def test_every_code_stands_there_with_its_status(page):
    stated = {code: int(status) for code, status in re.findall(r"^\| `([a-z_]+)` \| (\d{3}) \|", page, re.MULTILINE)}
    ours = {reason.value: refuse(reason, "x").status for reason in Reason}
    assert ours.items() <= stated.items()
    assert stated.keys() - ours.keys() == envoys_own() - ours.keys()


def envoys_own():
    """The codes of what Envoy says by itself."""
    replies = local_replies()
    formats = [replies["body_format"], *(reply["body_format_override"] for reply in replies["mappers"])]
    texts = [form["text_format_source"]["inline_string"] for form in formats]
    errors = [json.loads(text)["error"] for text in texts if text.startswith("{")]
    return {error["code"] for error in errors if "code" in error}
