"""``enginehouse engines``: what the catalogue knows about each engine and version."""

from typing import Annotated

import typer

from cli.completion import engines as engine_names
from cli.exits import CommandError, Exit
from cli.output import Format, Output, emit, tell
from engines.catalogue import Catalogue, load
from fleet.engine import EngineDescription
from fleet.nearest import did_you_mean
from fleet.spec import EngineName

app = typer.Typer(no_args_is_help=True, help="The engine catalogue.")


@app.command("list")
def list_engines(output: Output = Format.TABLE) -> None:
    """List engines with their newest known version and whether they are offered."""
    catalogue = load()
    rows: list[dict[str, object]] = [_row(catalogue, name) for name in catalogue.names]
    rows += [{"name": str(name), "kind": "hosted", "newest": None, "refused": None} for name in catalogue.hosted_names]
    data = {"engines": rows, "catalogue_digest": catalogue.digest}
    emit(data, output=output, rows=rows, names=[str(row["name"]) for row in rows])


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="An engine, for example vllm.", autocompletion=engine_names)],
    version: Annotated[str | None, typer.Argument(help="A version; default: the newest known.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what an engine of one version can do, how it is probed and stopped, and what it can't do."""
    catalogue = load()
    known = [str(engine) for engine in catalogue.names]
    if name not in known:
        message = f"no engine '{name}'{did_you_mean(name, known)} (known: {', '.join(known)})"
        raise CommandError(message, Exit.NOT_FOUND_OR_CONFLICT)
    engine = EngineName(name)
    found = catalogue.describe(engine, version or _newest(catalogue, engine))
    document = _document(found)
    rows = [{"fact": key, "value": value} for key, value in document.items()]
    emit(document, output=output, rows=rows, names=[f"{found.name}=={found.version}"])
    if found.note and output is Format.TABLE:
        tell(found.note)


def _newest(catalogue: Catalogue, name: EngineName) -> str:
    versions = catalogue.versions(name)
    if not versions:
        raise CommandError(f"no version of {name} is known; name one", Exit.USAGE)
    return versions[-1]


def _row(catalogue: Catalogue, name: EngineName) -> dict[str, object]:
    versions = catalogue.versions(name)
    newest = versions[-1] if versions else None
    return {"name": str(name), "kind": "self-hosted", "newest": newest, "refused": catalogue.refusal(name)}


def _document(found: EngineDescription) -> dict[str, object]:
    return {
        "name": str(found.name),
        "package": found.package,
        "version": found.version,
        "released": found.released,
        "flags_of": found.flags_of,
        "refusal": found.refusal,
        "quantizations": list(found.quantizations),
        "kv_cache_dtypes": list(found.kv_cache_dtypes),
        "parallelism": list(found.parallelism),
        "features": list(found.features),
        "cannot": list(found.cannot),
    }
