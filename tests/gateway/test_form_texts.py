"""Uploads on routes that filter requests: their texts are filtered as those of other requests, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.output_policy import Mode
from gateway.asked import Request
from gateway.decision import Allowed, DecisionCore
from gateway.form_document import parse_form
from gateway.index import index_of
from gateway.refusals import Reason, Refused
from tests.gateway.filtering import MASKED, TEXT, VALUES, filter_of

TYPE = "multipart/form-data; boundary=abc"
SOUND = b"RIFF,:" * 20_000
"""As any sound it holds what parts texts in JSON."""


def part(name, text, more=""):
    return f'--abc\r\nContent-Disposition: form-data; name="{name}"\r\n{more}\r\n{text}\r\n'.encode()


def upload(*texts, sound=SOUND):
    file = b'--abc\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + sound + b"\r\n"
    return b"".join((part("model", "voice"), *texts, file, b"--abc--\r\n"))


@pytest.fixture
def ask(world):
    def decide(body, **policy):
        made = filter_of(filters_requests=True, **policy)._route
        arm = world.arm().model_copy(update={"serves": ("transcription",)})
        first, *others = world.snapshot(output_filter="own").routes
        route = first.model_copy(update={"model": "voice", "arms": (arm,)})
        core = DecisionCore()
        snapshot = world.snapshot().model_copy(update={"routes": (route, *others)})
        core.replace(index_of(snapshot, {"own": made}), world.now)
        headers = {"authorization": f"Bearer {world.acme_key}", "content-type": TYPE}
        return core.decide(Request("POST", "/v1/audio/transcriptions", headers, body), world.now)

    return decide


def test_the_prompt_of_an_upload_is_filtered_and_every_other_byte_is_the_clients(ask):
    body = upload(part("prompt", TEXT), part("language", "en"), part("hotwords", VALUES["email"]))
    allowed = ask(body)
    assert isinstance(allowed, Allowed)
    sent = allowed.admitted.edited(body)
    assert sent == upload(part("prompt", MASKED), part("language", "en"), part("hotwords", "[EMAIL]"))
    assert parse_form(TYPE, sent)["prompt"] == MASKED


def test_an_upload_without_such_a_text_passes_as_it_is(ask):
    for texts in ((), (part("prompt", "about whales"),), (part("temperature", "0"), part("seed", "4111111111111111"))):
        allowed = ask(upload(*texts))
        assert isinstance(allowed, Allowed)
        assert allowed.admitted.edits == ()


def test_a_blocked_value_in_a_prompt_is_refused(ask):
    refused = ask(upload(part("prompt", f"pay with {VALUES['card']}")), classes={"card": Mode.BLOCK})
    assert isinstance(refused, Refused)
    assert (refused.status, refused.reason) == (400, Reason.BLOCKED)


def test_a_part_that_states_its_length_is_refused_only_where_it_would_be_wrong(ask):
    def stated(text):
        return part("prompt", text, f"Content-Length: {len(text)}\r\n")

    refused = ask(upload(stated(VALUES["email"])))
    assert isinstance(refused, Refused)
    assert (refused.status, refused.reason) == (400, Reason.BAD_FORM)
    assert VALUES["email"] not in json.dumps(refused.body.decode())
    assert isinstance(ask(upload(stated("whales"))), Allowed)


@given(st.lists(st.sampled_from(sorted(VALUES.values())) | st.text(max_size=20), max_size=6))
def test_whatever_the_texts_are_the_form_stays_one_and_they_are_filtered_as_any(texts):
    prompt = " so ".join(texts)
    body = upload(part("prompt", prompt), sound=b"RIFF")
    chosen = filter_of()
    assert chosen.read_request(body, is_form=True) is None
    filtered = filter_of().answer().whole(prompt, None)
    edited = body
    for edit in sorted(chosen.request_edits, key=lambda edit: -edit.start):
        edited = edited[: edit.start] + edit.insert + edited[edit.end :]
    assert edited == upload(part("prompt", filtered), sound=b"RIFF")
