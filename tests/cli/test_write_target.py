"""A command that changes something says on stderr which control plane it changes."""

import pytest

from cli.client import Api
from cli.exits import CommandError

NOBODY = "http://127.0.0.1:9"
"""The discard port: nothing listens there."""


def test_a_write_names_its_control_plane_once_and_without_credentials(capsys: pytest.CaptureFixture[str]) -> None:
    api = Api.connect(NOBODY.replace("//", "//someone:secret@"), "token")
    for _ in range(2):
        with pytest.raises(CommandError):
            api.post("/v1/keys", {"tenant": "acme"})
    shown = capsys.readouterr()
    assert shown.err == f"control plane: {NOBODY}\n"
    assert not shown.out


def test_a_question_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError):
        Api.connect(NOBODY, "token").get("/v1/facts")
    assert not capsys.readouterr().err
