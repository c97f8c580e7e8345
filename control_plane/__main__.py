"""``python -m control_plane``: serve, token, openapi."""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from control_plane.errors import ControlPlaneError
from control_plane.garbage import unsearched
from control_plane.records import Scope
from control_plane.settings import read_settings, settings_of

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def main(arguments: list[str]) -> int:
    """Run one command; gives the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except ControlPlaneError as error:
        sys.stderr.write(f"control_plane: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m control_plane", description="The control plane of Enginehouse.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    server = commands.add_parser("serve", help="run the server until SIGTERM")
    server.add_argument("--settings", type=Path, required=True, help="settings file (JSON)")
    server.set_defaults(run=_serve)
    token = commands.add_parser("token", help="make a token of the admin API and print it once")
    token.add_argument("--settings", type=Path, required=True, help="settings file (JSON)")
    token.add_argument("--name", type=_name, required=True, help="who uses it; one of the same name stops working")
    token.add_argument("--scope", type=Scope, choices=list(Scope), required=True, help="what it may do")
    token.set_defaults(run=_token)
    openapi = commands.add_parser("openapi", help="print the description of the admin API")
    openapi.set_defaults(run=_openapi)
    return parser


def _name(text: str) -> str:
    if _NAME.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not a name; expected lower-case letters, digits and dashes")


def _serve(options: argparse.Namespace) -> int:
    with unsearched():  # each command loads what it needs: a token needs no server
        from control_plane.serving import serve
    serve(read_settings(options.settings))
    return 0


def _token(options: argparse.Namespace) -> int:
    with unsearched():
        from control_plane.storage import token_service
    text = token_service(read_settings(options.settings)).create(options.name, options.scope)
    sys.stdout.write(text + "\n")
    return 0


def _openapi(_options: argparse.Namespace) -> int:
    sys.stdout.write(openapi_text())
    return 0


def openapi_text() -> str:
    """The description of the API as it stands in docs/reference/openapi.json."""
    from control_plane.main import build_app

    with tempfile.TemporaryDirectory() as folder:
        settings = settings_of({"database_url": f"sqlite:///{folder}/none.db"})
        return json.dumps(build_app(settings).openapi(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
