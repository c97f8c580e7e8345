"""Uploads are read in one way or not at all."""

import email
import email.policy
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.form_document import MAX_PARTS, parse_form, value_span
from gateway.request_document import BadDocument

TYPE = "multipart/form-data; boundary=abc"
NAMES = st.text("abcdefgh_[]", min_size=1, max_size=8).filter(lambda name: name not in {"file", "stream", "input"})


def text(name, value, head=""):
    return f'--abc\r\nContent-Disposition: form-data; name="{name}"{head}\r\n\r\n{value}\r\n'.encode()


def file(content=b"RIFF", name="file"):
    head = (
        f'--abc\r\nContent-Disposition: form-data; name="{name}"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    )
    return head.encode() + content + b"\r\n"


END = b"--abc--\r\n"


@given(
    st.dictionaries(NAMES, st.text(max_size=30).filter(lambda value: "--abc" not in value), max_size=5),
    st.binary(max_size=200).filter(lambda content: b"--abc" not in content),
)
def test_what_was_put_in_comes_out(fields, content):
    body = b"".join(text(name, value) for name, value in fields.items()) + file(content) + END
    read = parse_form(TYPE, body)
    assert {name: read[name] for name in fields} == fields
    assert read["file_bytes"] == len(content)
    for name, value in fields.items():
        start, end = value_span(body, name)
        assert body[start:end] == value.encode()


PIECES = st.sampled_from(
    [
        b"--abc", b"--abc--", b"\r\n", b"\n", b"\r", b"--", b"\r\n\r\n", b" ", b"x", b"\x00", b"\xff",
        b'Content-Disposition: form-data; name="model"', b'; filename="a"', b"content-type: text/plain",
        b"Content-Transfer-Encoding: base64", text("model", "m"), file(),
    ]
)  # fmt: skip
BODIES = st.lists(PIECES, max_size=12).map(b"".join) | st.binary(max_size=60)
TYPES = st.just(TYPE) | st.text(max_size=40) | st.text(max_size=9).map("multipart/form-data; boundary={}".format)


@given(TYPES, BODIES)
def test_whatever_comes_it_is_read_or_refused(content_type, body):
    with suppress(BadDocument):
        assert parse_form(content_type, body)["file_bytes"] <= len(body)


@given(BODIES)
def test_what_is_read_another_reader_reads_alike(body):
    try:
        read = parse_form(TYPE, body)
    except BadDocument:
        return
    other = email.message_from_bytes(f"Content-Type: {TYPE}\r\n\r\n".encode() + body, policy=email.policy.HTTP)
    assert not other.defects
    names = [part.get_param("name", header="content-disposition") for part in other.iter_parts()]
    assert names.count("file") == 1
    assert set(names) - {"file"} == set(read) - {"file", "file_bytes", "input"}


MODEL = text("model", "m")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (MODEL + MODEL + file() + END, "twice"),
        (MODEL + file() + file() + END, "twice"),
        (MODEL + END, "no file"),
        (file(name="model") + file() + END, "must be the part"),
        (text("file", "x") + END, "must be the part"),
        (b"junk\r\n" + MODEL + file() + END, "begin"),
        (MODEL + file() + END + b"junk", "behind"),
        (MODEL + file() + b"--abc-", "behind"),
        (MODEL + file(), "missing"),
        (MODEL.replace(b"--abc\r\n", b"--abc \r\n") + file() + END, "begin"),
        (MODEL + file().replace(b"--abc\r\n", b"--abc \r\n") + END, "boundary"),
        (MODEL.replace(b"\r\n", b"\n") + file() + END, "begin"),
        (MODEL + text("x", "a\n--abc\nb") + file() + END, "boundary"),
        (MODEL.replace(b'"model"', b"model") + file() + END, "Content-Disposition"),
        (text("model", "m", "; name*=utf-8''other") + file() + END, "Content-Disposition"),
        (text("model", "m", '; name="other"') + file() + END, "Content-Disposition"),
        (text("mo\\del", "m") + file() + END, "Content-Disposition"),
        (MODEL + text("x", "y", "\r\nContent-Transfer-Encoding: base64") + file() + END, "header"),
        (MODEL + text("x", "y", '\r\nContent-Disposition: form-data; name="z"') + file() + END, "header"),
        (MODEL + text("x", "y", "\r\n folded: x") + file() + END, "header"),
        (MODEL + text("stream", "yes") + file() + END, "true or false"),
        (MODEL + text("input", "x") + file() + END, "none of an upload"),
        (MODEL + text("x", "y" * 70_000) + file() + END, "bytes"),
        (MODEL.replace(b"\r\nm\r\n", b"\r\n\xff\r\n") + file() + END, "UTF-8"),
        (b"".join(text(f"x{n}", "y") for n in range(MAX_PARTS + 2)) + END, "parts"),
    ],
)
def test_what_readers_differ_on_is_refused(body, why):
    with pytest.raises(BadDocument, match=why):
        parse_form(TYPE, body)


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "application/json",
        "multipart/form-data",
        "multipart/mixed; boundary=abc",
        "multipart/form-data; boundary=abc; boundary=def",
        "multipart/form-data; charset=utf-7; boundary=abc",
        "multipart/form-data; boundary=abc,multipart/form-data; boundary=abc",
        'multipart/form-data; boundary="abc',
    ],
)
def test_a_type_that_says_more_or_less_than_one_boundary_is_refused(content_type):
    with pytest.raises(BadDocument, match="Content-Type"):
        parse_form(content_type, MODEL + file() + END)


def test_a_quoted_boundary_and_a_list_are_what_clients_send():
    granularities = text("timestamp_granularities[]", "word") + text("timestamp_granularities[]", "segment")
    read = parse_form(
        'Multipart/Form-Data; boundary="abc"', MODEL + granularities + text("stream", "true") + file() + END
    )
    assert read["model"] == "m"
    assert read["stream"] is True
