"""`enginehouse usage list` against a fake control plane: filters are passed on, and each format is what it says."""

import csv
import io
import json

import httpx2
import pytest
from typer.testing import CliRunner

from cli.client import Api
from cli.main import app
from cli.server_profile import Profile

ITEM = {
    "tenant": "acme",
    "model": "chat",
    "day": "2026-11-30",
    "deployment": None,
    "key": None,
    "requests": 2,
    "unanswered_requests": 0,
    "estimated_requests": 1,
    "unpriced_requests": 0,
    "input_tokens": 10,
    "cached_tokens": 4,
    "output_tokens": 7,
    "cost_usd": "0.000000000001",
}
TABLE = "tenant,requests\r\nacme,2\r\n"


@pytest.fixture
def asked(monkeypatch):
    """What the fake control plane was asked."""
    seen = []

    def handle(request):
        seen.append((request.url.path, dict(request.url.params)))
        if request.url.path.endswith(".csv"):
            return httpx2.Response(200, text=TABLE, headers={"content-type": "text/csv"})
        return httpx2.Response(200, json={"items": [ITEM], "next_page_token": None})

    made = Api(Profile("http://fleet", "eh_x"), httpx2.MockTransport(handle))
    monkeypatch.setattr(Api, "connect", classmethod(lambda *_: made))
    return seen


def run(*arguments):
    result = CliRunner().invoke(app, ["usage", "list", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_filters_are_passed_on_and_json_is_exact(asked):
    shown = json.loads(run("--tenant", "acme", "--from", "2026-11-01", "--to", "2026-11-30", "-o", "json"))
    assert shown == {"items": [ITEM]}
    ((path, query),) = asked
    assert path == "/v1/usage"
    assert query.items() >= {"tenant": "acme", "from": "2026-11-01", "to": "2026-11-30"}.items()
    assert query["group_by"] == "tenant,model,day"
    assert "model" not in query


def test_a_table_for_programs_comes_as_the_server_made_it(asked):
    rows = list(csv.DictReader(io.StringIO(run("--group-by", "tenant", "-o", "csv"))))
    assert rows == [{"tenant": "acme", "requests": "2"}]
    assert asked == [("/v1/usage.csv", {"group_by": "tenant"})]


def test_a_table_for_people_names_what_was_asked(asked):
    head, line = run().splitlines()[-2:]
    words = "TENANT MODEL DAY REQUESTS UNANSWERED REQUESTS INPUT TOKENS CACHED TOKENS OUTPUT TOKENS COST USD"
    assert " ".join(head.split()) == words
    assert line.split()[:4] == ["acme", "chat", "2026-11-30", "2"]


def test_a_day_that_is_none_is_told():
    result = CliRunner().invoke(app, ["usage", "list", "--from", "yesterday"])
    assert result.exit_code == 2
