"""What `make install` decides before it installs anything."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("enginehouse_ci_install", ROOT / ".ci" / "install.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_python_that_will_do_gets_no_complaint(install: ModuleType) -> None:
    assert install.complaint((3, 11), venv_works=True) is None
    assert install.complaint((3, 14), venv_works=True) is None


def test_an_old_python_is_named_with_what_is_needed(install: ModuleType) -> None:
    message = install.complaint((3, 9), venv_works=True)
    assert "3.11" in message
    assert "3.9" in message


def test_a_missing_venv_module_is_one_message_with_the_command(install: ModuleType) -> None:
    message = install.complaint((3, 11), venv_works=False)
    assert "apt-get install python3-venv" in message
    assert "\n" not in message


LISTING = """\
:env:.find-links='wheels'
global.cert='/etc/ssl/certs/ca-certificates.crt'
global.index-url='https://registry.example/simple'
install.index-url='https://other.example/simple'
freeze.timeout='10'
"""


def test_the_more_specific_setting_of_pip_wins(install: ModuleType) -> None:
    settings = install.pip_settings(LISTING)
    assert settings["index-url"] == "https://other.example/simple"
    assert settings["cert"] == "/etc/ssl/certs/ca-certificates.crt"
    assert "timeout" not in settings


def test_the_environment_wins_over_pips_files(install: ModuleType) -> None:
    listing = LISTING + ":env:.index-url='https://mine.example/simple'\n"
    assert install.pip_settings(listing)["index-url"] == "https://mine.example/simple"
    shuffled = "\n".join(reversed(listing.splitlines()))
    assert install.pip_settings(shuffled)["index-url"] == "https://mine.example/simple"


def test_uv_uses_the_registry_that_pip_is_told_to_use(install: ModuleType) -> None:
    environment = install.uv_environment({}, install.pip_settings(LISTING))
    assert environment["UV_DEFAULT_INDEX"] == "https://other.example/simple"
    assert environment["SSL_CERT_FILE"] == "/etc/ssl/certs/ca-certificates.crt"


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_what_is_set_for_uv_wins_over_pips_settings(install: ModuleType, variable: str) -> None:
    environ = {variable: "https://mine.example/simple", "SSL_CERT_FILE": "mine.crt"}
    environment = install.uv_environment(environ, install.pip_settings(LISTING))
    assert environment[variable] == "https://mine.example/simple"
    assert environment.get("UV_DEFAULT_INDEX", "https://mine.example/simple") == "https://mine.example/simple"
    assert environment["SSL_CERT_FILE"] == "mine.crt"


def test_several_extra_indexes_are_one_line_for_uv(install: ModuleType) -> None:
    settings = install.pip_settings(r"global.extra-index-url='\nhttps://a.example/simple\nhttps://b.example/simple'")
    assert install.uv_environment({}, settings)["UV_INDEX"] == "https://a.example/simple https://b.example/simple"


def test_uv_never_fetches_a_python(install: ModuleType) -> None:
    assert install.uv_environment({}, {})["UV_PYTHON_DOWNLOADS"] == "never"


def test_an_active_environment_of_the_person_is_left_alone(install: ModuleType) -> None:
    assert "VIRTUAL_ENV" not in install.uv_environment({"VIRTUAL_ENV": "elsewhere"}, {})
