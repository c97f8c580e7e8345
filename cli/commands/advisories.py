"""``enginehouse advisories``: is a version safe, from which version on is an engine, what is known."""

import re
from typing import Annotated

import typer

from cli.advisory_card import rated
from cli.columns import Shortened
from cli.commands.show_advisory import show
from cli.completion import code_paths as code_path_words
from cli.completion import engines as engine_names
from cli.completion import releases
from cli.exits import Exit, UsageError
from cli.facts_at_hand import DataOption, PolicyOption, advisory_data, policy_of, where_from
from cli.output import Format, Output, emit, say, tell
from cli.table import table
from fleet.advisory import Advisory
from fleet.codepath import CodePath
from fleet.facts import AdvisoryData
from fleet.matching import Match, Result
from fleet.nearest import did_you_mean, nearest
from fleet.pins import Closed, EnginePins, Floor, PathPin, code_paths, engine_pins
from fleet.severity import Severity, highest
from fleet.spec import EngineName
from fleet.verdict import Verdict
from fleet.verdict import check as check_version
from sources.companions import LABEL_CODES

MAX_RELEASE_CHARACTERS = 200

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
    if output is Format.TABLE:
        table([_match_row(match) for match in verdict.matches], title=f"{package} {version}: {verdict.result}")
        _say_verdict(verdict, found)
    else:
        names = [match.advisory.id for match in verdict.matches]
        emit(_verdict_json(verdict, found), output=output, names=names)
    if fail and verdict.result is not Result.NOT_AFFECTED:
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
    packages = engine or [str(name) for name in EngineName]
    all_pins = [engine_pins(found, package, rules) for package in packages]
    emit(
        {"engines": [_pins_json(item) for item in all_pins], **_origin(found)},
        output=output,
        rows=[_pin_row(item, pin) for item in all_pins for pin in item.paths],
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
        tell(f"unknown: {found.why_unknown(package)}{did_you_mean(package, _packages(found))}")
    rows = [
        {
            "id": advisory.id,
            "aliases": list(advisory.aliases),
            "packages": sorted(advisory.packages),
            "severity": _word(highest(map(advisory.severity, advisory.packages))),
            "withdrawn_by": list(advisory.withdrawn_by),
            "incomplete_fix_of": list(advisory.incomplete_fix_of),
        }
        for advisory in advisories
    ]
    shown = [_advisory_row(advisory) for advisory in advisories]
    emit({"advisories": rows, **_origin(found)}, output=output, rows=shown, names=[str(row["id"]) for row in rows])


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


def _packages(data: AdvisoryData) -> list[str]:
    return sorted({package for advisory in data.advisories for package in advisory.packages})


def _origin(data: AdvisoryData) -> dict[str, object]:
    return {"facts": {"digest": data.digest, "as_of": data.as_of, "source": data.source}}


def _verdict_json(verdict: Verdict, data: AdvisoryData) -> dict[str, object]:
    return {
        "engine": verdict.package,
        "version": verdict.version,
        "published": verdict.published,
        "verdict": str(verdict.result),
        "reason": verdict.reason,
        "matches": [_match_json(match) for match in verdict.matches],
        "suppressed": [_match_json(match) for match in verdict.suppressed],
        "quarantined": [item.model_dump(mode="json") for item in data.quarantined],
        **_origin(data),
    }


def _match_json(match: Match) -> dict[str, object]:
    advisory = match.advisory
    return {
        "id": advisory.id,
        "aliases": list(advisory.aliases),
        "severity": _word(match.severity),
        "paths": sorted(match.paths),
        "result": str(match.result),
        "reason": match.reason,
        "fixed": list(match.fixed),
        "is_malware": advisory.is_malware,
        "incomplete_fix_of": list(advisory.incomplete_fix_of),
        "withdrawn_by": list(advisory.withdrawn_by),
        "sources": [
            {"id": name, "result": str(answer.result), "reason": answer.reason} for name, answer in match.by_source
        ],
        "references": [reference.url for record in advisory.records for reference in record.references],
    }


def _word(severity: Severity | None) -> str | None:
    return None if severity is None else str(severity)


def _match_row(match: Match) -> dict[str, object]:
    return {
        "id": match.advisory.id,
        "result": str(match.result),
        "severity": rated(match.severity),
        "paths": sorted(match.paths) or "every path",
        "fixed": list(match.fixed),
        "reason": match.reason + (" (sources disagree)" if match.sources_disagree else ""),
    }


def _say_verdict(verdict: Verdict, data: AdvisoryData) -> None:
    say(f"verdict: {verdict.result} ({verdict.reason})")
    if not data.advisories_for(verdict.package):
        say(f"{verdict.package} is in no record{did_you_mean(verdict.package, _packages(data))}")
    if verdict.published is False:
        say(_not_published(verdict, data))
    if verdict.suppressed:
        ids = ", ".join(match.advisory.id for match in verdict.suppressed)
        say(f"not counted, their code paths are off: {ids}")
    say(where_from(data))


def _not_published(verdict: Verdict, data: AdvisoryData) -> str:
    from fleet.versions import parse_version

    published, version = data.published_versions(verdict.package), parse_version(verdict.version)
    near = published.near(version) if published and version else ()
    beside = f"; near it: {', '.join(map(str, near))}" if near else ""
    return f"{verdict.package} {verdict.version} is not published{beside}"


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


def _pin_row(item: EnginePins, pin: PathPin) -> dict[str, object]:
    limit = f">= {pin.limit.version}" if isinstance(pin.limit, Floor) else "closed"
    shown = list(pin.decided_by[:4]) + (["..."] if len(pin.decided_by) > 4 else [])
    decided_by = Shortened(", ".join(pin.decided_by), ", ".join(shown))
    return {"engine": item.package, "path": pin.path, "limit": limit, "decided_by": decided_by}


def _recommendation(item: EnginePins) -> str:
    return f"take {item.recommended}" if item.recommended else f"nothing to recommend: {item.reason}"
