"""The client of the moderation service: a verdict on every sentence, or none at all."""

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from fleet.output_policy import FailureMode, FilterPolicy, Moderation
from gateway.answer_filter import RouteFilter
from gateway.errors import GatewayError
from gateway.filtered_whole import WholeAnswer, judged
from gateway.hash_secret import FILE_NAME, SECRET_BYTES, conversation_secret, own_secret, read_secret
from gateway.moderation import MOST_AT_ONCE, ModerationClient, NoVerdict
from gateway.output_filter.channel import CompiledPolicy
from gateway.settings import ModerationService

URL = "http://moderation.test/v1/moderations"


def client_of(answer, **service):
    transport = httpx2.MockTransport(answer if callable(answer) else lambda _: answer)
    return ModerationClient(httpx2.AsyncClient(transport=transport), ModerationService(url=URL, **service))


@pytest.mark.asyncio
async def test_every_sentence_is_judged_in_its_order_and_many_are_asked_in_parts(tmp_path):
    asked = []

    def judge(request):
        asked.append((str(request.url), request.headers.get("authorization"), json.loads(request.content)))
        return httpx2.Response(200, json={"results": [{"flagged": "3" in one} for one in asked[-1][2]["input"]]})

    token = tmp_path / "token"
    token.write_text("secret\n")
    texts = [str(number) for number in range(MOST_AT_ONCE + 6)]
    verdicts = await client_of(judge, token_file=token, model="judge-1").may_pass(texts)
    assert verdicts == ["3" not in text for text in texts]
    assert [len(question["input"]) for _, _, question in asked] == [MOST_AT_ONCE, 6]
    assert asked[0][:2] == (URL, "Bearer secret")
    assert asked[0][2]["model"] == "judge-1"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(500, json={"results": [{"flagged": False}]}),
        httpx2.Response(302, headers={"location": URL}),
        httpx2.Response(200, json={"results": []}),
        httpx2.Response(200, json={"results": [{"flagged": False}, {"flagged": False}]}),
        httpx2.Response(200, json={"results": [{"flagged": "no"}]}),
        httpx2.Response(200, json={"results": [{"flagged": 0}]}),
        httpx2.Response(200, json={"results": [{}]}),
        httpx2.Response(200, json=[]),
        httpx2.Response(200, content=b"\xff"),
    ],
)
async def test_what_is_no_verdict_is_none_and_quotes_nothing(answer):
    with pytest.raises(NoVerdict) as refused:
        await client_of(answer).may_pass(["the-sentence"])
    assert "the-sentence" not in str(refused.value)


@pytest.mark.asyncio
async def test_a_service_that_is_away_and_a_token_that_is_missing_give_no_verdict(tmp_path):
    def away(request):
        raise httpx2.ConnectError("no")

    with pytest.raises(NoVerdict, match="ConnectError"):
        await client_of(away).may_pass(["a"])
    with pytest.raises(NoVerdict, match="token file"):
        await client_of(away, token_file=tmp_path / "none").may_pass(["a"])
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(NoVerdict, match="no token"):
        await client_of(away, token_file=tmp_path / "empty").may_pass(["a"])


def test_the_secret_of_hashes_is_made_once_and_kept_private(tmp_path):
    secret = own_secret(tmp_path)
    assert len(secret) == SECRET_BYTES
    assert own_secret(tmp_path) == secret
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b"short")
    assert len(own_secret(tmp_path)) == SECRET_BYTES


@pytest.mark.parametrize("content", [None, b"short"])
def test_workers_that_start_at_once_have_one_secret(tmp_path, content):
    together = threading.Barrier(8)

    def start(folder):
        together.wait()
        return own_secret(folder)

    with ThreadPoolExecutor(8) as workers:
        for number in range(30):
            folder = tmp_path / str(number)
            folder.mkdir()
            if content is not None:
                (folder / FILE_NAME).write_bytes(content)
            made = set(workers.map(start, [folder] * 8))
            assert made == {own_secret(folder)}


def test_a_shared_secret_has_to_be_long(tmp_path):
    file = tmp_path / "secret"
    with pytest.raises(GatewayError, match="cannot be read"):
        read_secret(file)
    file.write_bytes(b"short\n")
    with pytest.raises(GatewayError, match="holds 5 bytes"):
        read_secret(file)
    file.write_bytes(b"r" * 40 + b"\n")
    assert read_secret(file) == b"r" * 40


def test_every_conversation_has_a_secret_of_its_own_that_depends_on_the_gateways():
    secrets = {conversation_secret(secret, one) for secret in (b"a" * 32, b"b" * 99) for one in (b"one", b"two")}
    assert len(secrets) == 4


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", FailureMode)
async def test_an_answer_whose_sentences_can_not_be_found_has_no_verdict(mode):
    policy = FilterPolicy(moderation=Moderation(failure_mode=mode), failure_mode=FailureMode.OPEN)
    chosen = RouteFilter(CompiledPolicy(policy), None, b"").of("acme", "chat", {})
    body = b"[" * 900 + b"]" * 900
    whole = await judged(chosen, client_of(httpx2.Response(500)), WholeAnswer(body, Counter(), failure="Deep"))
    assert (whole.body, whole.failure) == (body if mode is FailureMode.OPEN else None, "NoVerdict")
