"""Commands that every noun with a name and a spec has: list, get, apply from files, delete."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption, member
from cli.exits import UsageError
from cli.output import Format, Output, emit, say, tell
from cli.table import table

Name = Annotated[str, typer.Argument(help="Its name.")]
Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="YAML or JSON files of one object each; - = stdin.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; store nothing.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; it stands in the audit log.")]
Row = dict[str, object]


def spec_row(item: Document) -> Row:
    """A row of the name and every plain member of the spec."""
    return {"name": name_of(item), **{key: cell(value) for key, value in item.get("spec", {}).items()}}


def name_of(item: Document) -> str:
    """The name of an object."""
    return str(item["metadata"]["name"])


def cell(value: object) -> object:
    """A value as a table shows it: a mapping with its values, the names of what a list holds, else itself."""
    if isinstance(value, dict):
        shown = (f"{name} {item}" if isinstance(item, int | float | str) else str(name) for name, item in value.items())
        return ", ".join(shown) or None
    if isinstance(value, list):
        return ", ".join(str(next(iter(item.values()), "")) if isinstance(item, dict) else str(item) for item in value)
    return value


@dataclass(frozen=True, slots=True)
class Noun:
    """What the commands of one noun are made from."""

    plural: str
    """As it stands in the path."""
    kind: str
    word: str
    """One of them, for people."""
    row: Callable[[Document], Row] = spec_row

    def path(self, name: str) -> str:
        """The path of one of them."""
        return member(self.plural, name)

    def show(self, items: list[Document], output: Format, *, whole: object | None = None) -> None:
        """Print some of them."""
        data = {"items": items} if whole is None else whole
        emit(data, output=output, rows=[self.row(item) for item in items], names=[name_of(item) for item in items])

    def change(self, api: Api, name: str, changed: Callable[[Document], Document], *, reason: str | None) -> Document:
        """Create it, or replace the spec that was there by what is made of it; somebody's change between is exit 4."""
        found = api.find(self.path(name))
        spec = changed(found[0]["spec"] if found else {})
        body = {"apiVersion": "enginehouse.dev/v1", "kind": self.kind, "metadata": {"name": name}, "spec": spec}
        return api.put(self.path(name), body, etag=found[1] if found else None, reason=reason)


def add_commands(app: typer.Typer, noun: Noun) -> None:
    """Give a noun its four commands."""
    many, command = noun.plural.replace("-", " "), f"enginehouse {noun.plural}"
    app.command("list", help=f"List {many}.\n\nExample: {command} list -o json")(_list(noun))
    app.command("get", help=f"Show one {noun.word}.\n\nExample: {command} get NAME -o yaml")(_get(noun))
    app.command(
        "apply",
        help=f"Create or replace {many} from files, as 'get -o yaml' prints them; one with a generation replaces only "
        f"that one (else exit 4).\n\nExample: {command} apply FILE --dry-run",
    )(_apply(noun))
    app.command("delete", help=f"Remove a {noun.word}.\n\nExample: {command} delete NAME --reason 'not used any more'")(
        _delete(noun)
    )


def _list(noun: Noun) -> Callable[..., None]:
    def command(
        server: ServerOption = None,
        token: TokenOption = None,
        profile: ProfileOption = None,
        output: Output = Format.TABLE,
    ) -> None:
        noun.show(list(Api.connect(server, token, profile).every(f"/v1/{noun.plural}")), output)

    return command


def _get(noun: Noun) -> Callable[..., None]:
    def command(
        name: Name,
        server: ServerOption = None,
        token: TokenOption = None,
        profile: ProfileOption = None,
        output: Output = Format.TABLE,
    ) -> None:
        item = Api.connect(server, token, profile).get(noun.path(name))
        noun.show([item], output, whole=item)

    return command


def _apply(noun: Noun) -> Callable[..., None]:
    def command(
        files: Files,
        dry_run: DryRun = False,
        reason: Reason = None,
        server: ServerOption = None,
        token: TokenOption = None,
        profile: ProfileOption = None,
        output: Output = Format.TABLE,
    ) -> None:
        documents = [_read(path, noun) for path in files]
        api = Api.connect(server, token, profile)
        answers = [_applied(api, noun, document, dry_run=dry_run, reason=reason) for document in documents]
        if not dry_run:
            noun.show(answers, output)
            return
        rows = [{"name": plan["name"], "action": plan["action"]} for plan in answers]
        emit({"items": answers}, output=output, rows=rows, names=[str(plan["name"]) for plan in answers])
        if output is Format.TABLE:
            for plan in answers:
                _show_changes(plan)

    return command


def _delete(noun: Noun) -> Callable[..., None]:
    def command(
        name: Name,
        reason: Reason = None,
        server: ServerOption = None,
        token: TokenOption = None,
        profile: ProfileOption = None,
    ) -> None:
        api = Api.connect(server, token, profile)
        _, etag = api.get_with_etag(noun.path(name))
        api.delete(noun.path(name), etag=etag, reason=reason)
        tell(f"{noun.word} {name} removed")

    return command


def _applied(api: Api, noun: Noun, document: Document, *, dry_run: bool, reason: str | None) -> Document:
    metadata = document["metadata"]
    path, generation = noun.path(metadata["name"]), metadata.get("generation")
    if generation is not None:
        return api.put(path, document, etag=f'"{generation}"', dry_run=dry_run, reason=reason)
    found = api.find(path)
    return api.put(path, document, etag=found[1] if found else None, dry_run=dry_run, reason=reason)


def _show_changes(plan: Document) -> None:
    if not plan["changes"]:
        say(f"{plan['name']}: no difference")
        return
    rows = [{key: item[key] for key in ("pointer", "before", "after")} for item in plan["changes"]]
    table(rows, title=str(plan["name"]))


def _read(path: Path, noun: Noun) -> Document:
    """The object in a file.

    Raises:
        UsageError: it can't be read, is no object of this kind or has no name.
    """
    from fleet.manifest import ManifestError, load_yaml

    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        document = load_yaml(text, source=str(path))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text") from None
    except ManifestError as error:
        raise UsageError(str(error)) from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: expected an object of kind {noun.kind}")
    kind = document.get("kind", noun.kind)
    if kind != noun.kind:
        raise UsageError(f"{path}: it is of kind {kind!r}; '{noun.plural} apply' takes {noun.kind}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise UsageError(f"{path}: /metadata/name is missing; names are the ids")
    return document
