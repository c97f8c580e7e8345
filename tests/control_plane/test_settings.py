"""Settings: a closed file, the environment above it, and messages that name the nearest key."""

import json

import pytest

from control_plane.errors import SettingsError
from control_plane.main import assemble
from control_plane.settings import read_settings, settings_of, simulated_engines

GOOD = {"database_url": "sqlite:////tmp/none.db"}


def test_a_file_with_a_database_is_enough(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(GOOD))
    settings = read_settings(path)
    assert (settings.host, settings.cluster, settings.environment) == ("127.0.0.1", "none", "local")
    assert settings.launch == simulated_engines()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "list"),
        ("{}", "database_url"),
        ('{"database_url": "x", "prot": 1}', "did you mean 'port'"),
        ('{"database_url": "x", "port": 70000}', "port"),
        ('{"database_url": "x", "cluster": "processes"}', "process_dir"),
        ('{"database_url": "x", "cluster": "kubernetes"}', "cluster"),
    ],
)
def test_settings_that_can_not_be_used_say_why(tmp_path, text, words):
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=words):
        read_settings(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"missing\.json"):
        read_settings(tmp_path / "missing.json")


def test_the_environment_stands_above_the_file_and_the_url_is_never_shown(monkeypatch):
    monkeypatch.setenv("ENGINEHOUSE_DATABASE_URL", "sqlite:////tmp/with-a-password.db")
    settings = settings_of(dict(GOOD))
    assert settings.database_url.endswith("with-a-password.db")
    assert "password" not in repr(settings)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"environment": "prodd"}, "did you mean 'prod'"),
        ({"policy_file": "/nowhere/policy.yaml"}, "policy.yaml"),
        ({"cluster": "processes", "process_dir": "/proc/nowhere"}, "process_dir"),
    ],
)
def test_a_control_plane_does_not_start_on_what_it_can_not_read(tmp_path, changes, words):
    settings = settings_of({"database_url": f"sqlite:///{tmp_path}/state.db", **changes})
    with pytest.raises(SettingsError, match=words):
        assemble(settings)
