"""``enginehouse advisories``: is a version safe, from which version on is an engine, what is known."""

import re
from enum import StrEnum
from typing import Annotated

import typer

from cli.advisory_card import rated
from cli.columns import Shortened
from cli.commands.show_advisory import show
from cli.completion import code_paths as code_path_words
from cli.completion import engines as engine_names
from cli.completion import releases
from cli.exits import CommandError, Exit, UsageError
from cli.facts_at_hand import DataOption, PolicyOption, advisory_data, policy_of, where_from
from cli.output import Format, Output, emit, say, tell
from cli.table import table
from cli.verdict_card import match_row, origin, packages, say_verdict, verdict_json, word
from fleet.advisory import Advisory
from fleet.codepath import CodePath
from fleet.facts import AdvisoryData
from fleet.matching import Result
from fleet.nearest import did_you_mean, nearest
from fleet.pins import Closed, EnginePins, Floor, PathPin, code_paths, engine_pins, newest_acceptable
from fleet.policy import Policy
from fleet.severity import highest
from fleet.spec import EngineName
from fleet.verdict import check as check_version
from sources.companions import LABEL_CODES

MAX_RELEASE_CHARACTERS = 200


class FailOn(StrEnum):
    """The mildest verdict that fails."""

    AFFECTED = "affected"
    NO_FIX_KNOWN = "no_fix_known"
    UNKNOWN = "unknown"


app = typer.Typer(no_args_is_help=True, help="Check a version, show pins, list advisories, show one.")


@app.command()
def check(
    release: Annotated[
        str,
        typer.Argument(
            metavar="ENGINE==VERSION", help="For example vllm==0.33.0 or torch==2.6.0.", autocompletion=releases
        ),
    ],
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path", help="A code path that is switched on (repeatable); default: all.", autocompletion=code_path_words
        ),
    ] = None,
    data: DataOption = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit 3 unless the verdict is not_affected.")] = False,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="Exit 3 from this verdict on; unknown is the same as --fail.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what the advisories know about one version.

    [dim]Example:[/dim] enginehouse advisories check sglang==0.5.9 --path multimodal -o json
    """
    package, version = _release(release)
    found = advisory_data(data)
    paths = [LABEL_CODES.get(word, word) for word in path or []]
    _refuse_unknown_paths(paths, code_paths(found, package))
    verdict = check_version(found, package, version, frozenset(paths) if paths else None)
    take = newest_acceptable(found, package, Policy(), paths=frozenset(paths) if paths else None)
    if output is Format.TABLE:
        table([match_row(match) for match in verdict.matches], title=f"{package} {version}: {verdict.result}")
        say_verdict(verdict, found, take)
    else:
        names = [match.advisory.id for match in verdict.matches]
        emit(verdict_json(verdict, found, take), output=output, names=names)
    limit = Result.UNKNOWN if fail else Result(fail_on) if fail_on else None
    if limit is not None and verdict.result.strictness >= limit.strictness:
        raise typer.Exit(Exit.REFUSED)


@app.command()
def pins(
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine", help="An engine or package (repeatable); default: every engine.", autocompletion=engine_names
        ),
    ] = None,
    data: DataOption = None,
    policy: PolicyOption = None,
    environment: Annotated[str, typer.Option("--env", help="Whose policy counts.")] = "local",
    output: Output = Format.TABLE,
) -> None:
    """Show from which version on each code path of an engine is acceptable, and which version to take.

    [dim]Example:[/dim] enginehouse advisories pins --engine vllm
    """
    rules = policy_of(environment, policy)
    found = advisory_data(data)
    asked = engine or [str(name) for name in EngineName]
    for package in asked:
        _refuse_unknown_package(package, found)
    all_pins = [engine_pins(found, package, rules) for package in asked]
    emit(
        {"engines": [_pins_json(item) for item in all_pins], **origin(found)},
        output=output,
        rows=[row for item in all_pins for row in _pin_rows(item)],
        names=[f"{item.package}=={item.recommended}" for item in all_pins if item.recommended],
    )
    if output is Format.TABLE:
        for item in all_pins:
            say(f"{item.package}: {_recommendation(item)}")
        say(where_from(found))


@app.command("list")
def list_advisories(
    package: Annotated[str | None, typer.Argument(help="Only advisories that name this package.")] = None,
    data: DataOption = None,
    output: Output = Format.TABLE,
) -> None:
    """List the advisories at hand, records of one defect merged."""
    found = advisory_data(data)
    advisories = found.advisories_for(package) if package else found.advisories
    if package and not advisories:
        tell(f"unknown: {found.why_unknown(package)}{did_you_mean(package, packages(found))}")
    rows = [
        {
            "id": advisory.id,
            "aliases": list(advisory.aliases),
            "packages": sorted(advisory.packages),
            "severity": word(highest(map(advisory.severity, advisory.packages))),
            "withdrawn_by": list(advisory.withdrawn_by),
            "incomplete_fix_of": list(advisory.incomplete_fix_of),
        }
        for advisory in advisories
    ]
    shown = [_advisory_row(advisory) for advisory in advisories]
    emit({"advisories": rows, **origin(found)}, output=output, rows=shown, names=[str(row["id"]) for row in rows])


app.command("show")(show)


def _advisory_row(advisory: Advisory) -> dict[str, object]:
    notes = [f"withdrawn by {name}" for name in advisory.withdrawn_by]
    notes += [f"incomplete fix of {name}" for name in advisory.incomplete_fix_of]
    return {
        "id": advisory.id,
        "severity": rated(highest(map(advisory.severity, advisory.packages))),
        "packages": sorted(advisory.packages),
        "aliases": list(advisory.aliases),
        "note": "; ".join(notes) or None,
    }


_NOT_ONE_RELEASE = re.compile(r"[=<>~!*,;\ud800-\udfff\x00-\x1f]")
_EXTRAS = re.compile(r"\s*\[[^\[\]]*\]$")


def _release(text: str) -> tuple[str, str]:
    """The package, without extras, and the version."""
    name, separator, rest = text.partition("==")
    package, version = _EXTRAS.sub("", name.strip()), rest.strip()
    if len(text) > MAX_RELEASE_CHARACTERS:
        raise UsageError(f"'{text[:40]}…' is longer than {MAX_RELEASE_CHARACTERS} characters; not ENGINE==VERSION")
    if not (separator and package and version) or _NOT_ONE_RELEASE.search(package + version):
        raise UsageError(f"{text!a} is not ENGINE==VERSION; write for example vllm==0.33.0")
    return package, version


def _refuse_unknown_paths(paths: list[str], known: tuple[CodePath, ...]) -> None:
    for path in paths:
        if path not in known:
            close = nearest(path, known)
            raise UsageError(
                f"--path {path}: not a known code path; {f'did you mean {close}?' if close else 'known: '}"
                f"{'' if close else ', '.join(known)}"
            )


def _refuse_unknown_package(package: str, data: AdvisoryData) -> None:
    """A word that the data does not know has no pins: nothing is said of a package by its misspelling."""
    if data.advisories_for(package) or data.published_versions(package) is not None or package in set(EngineName):
        return
    known = sorted({*packages(data), *EngineName})
    hint = did_you_mean(package, known) or f"; known engines: {', '.join(EngineName)}"
    raise CommandError(f"the data knows no package '{package}'{hint}", Exit.NOT_FOUND_OR_CONFLICT)


def _pins_json(item: EnginePins) -> dict[str, object]:
    return {
        "engine": item.package,
        "recommended": item.recommended,
        "reason": item.reason,
        "pins": [_pin_json(pin) for pin in item.paths],
    }


def _pin_json(pin: PathPin) -> dict[str, object]:
    return {
        "path": pin.path,
        "floor": pin.limit.version if isinstance(pin.limit, Floor) else None,
        "closed": isinstance(pin.limit, Closed),
        "reason": pin.limit.reason if isinstance(pin.limit, Closed) else None,
        "decided_by": list(pin.decided_by),
    }


def _pin_rows(item: EnginePins) -> list[dict[str, object]]:
    """A row for each path, or one for all where nothing is known of any."""
    if len({pin.limit for pin in item.paths}) == 1 and isinstance(item.paths[0].limit, Closed):
        return [_pin_row(item, item.paths[0]) | {"path": "every path"}]
    return [_pin_row(item, pin) for pin in item.paths]


def _pin_row(item: EnginePins, pin: PathPin) -> dict[str, object]:
    limit = f">= {pin.limit.version}" if isinstance(pin.limit, Floor) else "closed"
    shown = list(pin.decided_by[:4]) + (["..."] if len(pin.decided_by) > 4 else [])
    decided_by = Shortened(", ".join(pin.decided_by), ", ".join(shown))
    return {"engine": item.package, "path": pin.path, "limit": limit, "decided_by": decided_by}


def _recommendation(item: EnginePins) -> str:
    return f"take {item.recommended}" if item.recommended else f"nothing to recommend: {item.reason}"
