"""The command ``enginehouse``: what it can do, and how its errors end."""

import errno
import gc
import os
import sys
from typing import Annotated, ClassVar

import typer

from cli.exits import CommandError, Exit
from cli.lazy import Lazy, LazyGroup
from cli.output import silence, tell

TRY = "Try it"
REVIEW = "Decide (no server needed)"
FLEET = "The fleet (asks the control plane)"


UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What a write to a standard stream can fail with; another error without a file is a fault of the program."""


GARBAGE_THRESHOLD = 50_000
"""New objects between two searches for garbage; Python's own is 700."""


class Commands(LazyGroup):
    """Every command of ``enginehouse``."""

    table: ClassVar[dict[str, Lazy]] = {
        "demo": Lazy("cli.commands.demo", "demo", "Start a local fleet and show what it does.", TRY),
        "local": Lazy("cli.commands.local", "local_app", "The local fleet: up, down, status, token.", TRY),
        "advisories": Lazy("cli.commands.advisories", "app", "Check a version, show pins and advisories.", REVIEW),
        "plan": Lazy(
            "cli.commands.plan", "plan", "Does a model fit, how is it split, how fast, what does it cost.", REVIEW
        ),
        "simulate": Lazy("cli.commands.simulate", "simulate", "Replay a trace on the gateway's own router.", REVIEW),
        "pin": Lazy("cli.commands.pin", "pin", "Fix all four parts of a manifest and say why.", REVIEW),
        "review": Lazy("cli.commands.review", "review", "Judge manifests by the rules.", REVIEW),
        "render": Lazy("cli.commands.render", "render", "The Kubernetes objects of pinned manifests.", REVIEW),
        "rules": Lazy("cli.commands.rules", "rules", "List the rules that judge a manifest.", REVIEW),
        "engines": Lazy("cli.commands.engines", "app", "The engine catalogue.", REVIEW),
        "facts": Lazy("cli.commands.facts", "app", "Where facts come from; pull them from a server.", REVIEW),
        "deployments": Lazy("cli.commands.deployments", "app", "Deployments: list, get, apply, diff, delete.", FLEET),
        "tenants": Lazy("cli.commands.tenants", "app", "Tenants of the gateway: budgets, weights, priority.", FLEET),
        "keys": Lazy("cli.commands.keys", "app", "API keys of tenants; a key is shown once.", FLEET),
        "routes": Lazy("cli.commands.routes", "app", "How public models are served; close a code path.", FLEET),
        "prices": Lazy("cli.commands.gateway_nouns", "prices", "What public models cost tenants.", FLEET),
        "token-issuers": Lazy(
            "cli.commands.gateway_nouns", "token_issuers", "Who may vouch for tenants by JWT.", FLEET
        ),
        "output-filters": Lazy(
            "cli.commands.gateway_nouns", "output_filters", "Filters of answers that routes can name.", FLEET
        ),
        "waivers": Lazy("cli.commands.nouns", "waivers", "Exceptions with an owner and an end.", FLEET),
        "triage": Lazy("cli.commands.nouns", "triage", "People's word on advisories that data leaves open.", FLEET),
        "usage": Lazy("cli.commands.usage", "app", "What tenants used: requests, tokens and cost.", FLEET),
        "audit": Lazy("cli.commands.audit", "app", "The audit log, and the proof that it is whole.", FLEET),
    }


app = typer.Typer(
    cls=Commands,
    name="enginehouse",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help needs no rich, which costs more CPU than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 refused by rules, 4 not found or conflict.",
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed_version

        typer.echo(f"enginehouse {installed_version('enginehouse')}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Run a fleet of LLM inference engines: advisories become pins, rules review every deployment.

    Start with 'enginehouse demo', which shows the whole thing on this machine, or ask whether a version is safe:
    'enginehouse advisories check vllm==0.18.1'.
    """


def run() -> None:
    """Run the command and end with one of the exit codes; a broken pipe and Ctrl-C end quietly."""
    _open_missing_streams()
    # A command makes much and drops little: fewer searches for garbage are a tenth of the CPU of 'advisories check'.
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except CommandError as error:
        tell(f"error: {error}")
        sys.exit(int(error.code))
    except BrokenPipeError:
        # The reader (head, less) has gone: leave nothing for the interpreter to flush.
        silence(sys.stdout)
        sys.exit(int(Exit.FAILED))
    except OSError as error:
        if error.filename is None and error.errno not in UNWRITABLE:
            raise
        tell(f"error: {error.filename or 'the output'} can't be written or read: {error.strerror or error}")
        silence(sys.stdout)
        sys.exit(int(Exit.FAILED))
    except KeyboardInterrupt:
        tell("interrupted")
        sys.exit(130)


def _open_missing_streams() -> None:
    """Let closed standard streams lead nowhere: else the first file that is opened would take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
