"""docs/reference/commands.md: every command of the real command line, as it is registered."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from layout import cell, code, page, plain, table

from cli.exits import Exit
from cli.lazy import Lazy, LazyGroup
from cli.main import Commands

EXAMPLE = re.compile(r"\[dim\]Example:\[/dim\]\s*(.+)$", re.DOTALL)
EXITS = (
    (Exit.DONE, "done; also a query that succeeded, whatever it found"),
    (Exit.FAILED, "failed: a server that can't be reached, a file that can't be written, a broken audit chain"),
    (Exit.USAGE, "usage, or an input that can't be read or parsed"),
    (Exit.REFUSED, "refused by the rules, or a bad answer under `--fail`"),
    (Exit.NOT_FOUND_OR_CONFLICT, "not found, or a conflict: it was changed meanwhile, or something else owns it"),
)
REFUSALS = {
    "advisories check": "with `--fail`, unless the verdict is `not_affected`",
    "pin": "nothing is acceptable, a digest or another part is missing, or with `--check` a pin is missing or stale",
    "review": "a manifest breaks a mandatory rule",
    "render": "a manifest has no pin, a stale one, or no objects; the others are printed",
    "local status": "with `--fail`, unless a fleet runs and all of it is healthy",
    "deployments apply": "the rules refuse a manifest",
    "deployments accept": "the rules refuse the proposed pin",
}
"""When a command exits 3. A command that names `Exit.REFUSED` and stands not here is an error."""
CHANGES = ("apply", "accept", "create", "delete")
"""Commands that change one thing of the control plane: another change may have come first."""
FAILURES = {
    "demo": "a step did not do what it promises; the step is named",
    "audit verify": "the chain does not hold; the event is named",
    "local up": "the fleet could not start; the reason is named",
    "local down": "something could not be ended; it is named",
}

INTRODUCTION = """
`-o json` prints valid JSON on stdout and nothing else; talk goes to stderr. Colour is left out where there is no
terminal or `NO_COLOR` is set. `--help` works on every command; `--install-completion` installs completion.

Commands that ask the control plane take `--server` and `--token`, else `ENGINEHOUSE_SERVER` and `ENGINEHOUSE_TOKEN`,
else a profile (`--profile`, `ENGINEHOUSE_PROFILE`, or `profile` in the file) of
`~/.config/enginehouse/config.toml`:

```toml
profile = "local"

[profiles.local]
server = "http://127.0.0.1:8600"
token = "..."
```

Where none of these names a server and exactly one local fleet of yours runs, they talk to that fleet with its
operator's token.

Commands that need no server say where their facts come from: `--data DIR` (folders of OSV files, searched recursively)
replaces the bundled snapshot, `--policy` is another policy. The environment whose policy and files count is the folder
`environments/<env>/` of the manifests; `--env` names it for others.
"""
PROGRAMS = """
| program | what it does |
|---|---|
| `python -m control_plane serve --settings FILE` | serves the admin API and runs its loops |
| `python -m control_plane token --settings FILE --name NAME --scope SCOPE` | makes a token, shown once |
| `python -m control_plane openapi` | prints the description of the admin API |
| `python -m gateway --settings FILE` | writes Envoy's configuration and serves its decisions |
| `python -m sources.snapshot build FOLDER... --retrieved DAY [--out FILE]` | rebuilds the bundled snapshot |
| `python -m simulator.engine --dialect ENGINE --engine-version VERSION -- COMMAND...` | a simulated engine |

Scopes of a token: `reader`, `operator`, `security-admin`.
"""


def render() -> str:
    """The page."""
    parts = [INTRODUCTION, "## Exit codes", table(("code", "meaning"), ((int(c), text) for c, text in EXITS))]
    parts += ["Every command may exit 0, 1, 2 and, on Ctrl-C, 130. Where it exits 3 or 4, that is said with it."]
    for panel in dict.fromkeys(entry.panel for entry in Commands.table.values()):
        parts.append(f"## {panel}")
        for name, entry in Commands.table.items():
            parts += list(_noun(name, entry)) if entry.panel == panel else []
    return page("Commands", "the registered commands of `cli`", *parts, "## Programs without a command", PROGRAMS)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that runs something, by its full name."""
    for name, entry in Commands.table.items():
        yield from _below(name, _load(name, entry))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer's own command type is private
    nested = getattr(command, "commands", None)
    if nested is None:
        yield name, command
        return
    for child, found in nested.items():
        yield from _below(f"{name} {child}", found)


def _load(name: str, entry: Lazy) -> Any:  # noqa: ANN401 - see above
    class One(LazyGroup):
        table = {name: entry}  # noqa: RUF012 - as in `Commands`

    group = One(name="enginehouse")
    _, command, _ = group.resolve_command(_context(group), [name])
    return command


def _context(group: Any) -> Any:  # noqa: ANN401 - see above
    return group.make_context("enginehouse", [], resilient_parsing=True)


def _noun(name: str, entry: Lazy) -> Iterator[str]:
    found = list(_below(name, _load(name, entry)))
    if len(found) > 1 or found[0][0] != name:
        yield f"### {name}"
        yield entry.help
    for full, command in found:
        yield from _command(full, command, level=3 if full == name else 4)


def _command(name: str, command: Any, *, level: int) -> Iterator[str]:  # noqa: ANN401 - see above
    arguments = [item for item in command.params if type(item).__name__ == "TyperArgument"]
    options = [item for item in command.params if type(item).__name__ == "TyperOption" and not item.hidden]
    usage = " ".join(["enginehouse", name, *map(_metavar, arguments), *(["[OPTIONS]"] if options else [])])
    yield f"{'#' * level} enginehouse {name}"
    text, example = _help(command.help or "")
    yield text
    yield f"```\n{usage}\n```"
    if example:
        yield f"Example: `{example}`"
    if arguments or options:
        rows = [(code(_metavar(item)), "", item.help or "") for item in arguments]
        rows += [(_names(item), _value(item), _meaning(item)) for item in options]
        yield table(("argument or option", "value", "meaning"), rows)
    exits = list(_exits(name, command))
    if exits:
        yield "\n".join(exits)


def _help(text: str) -> tuple[str, str]:
    found = EXAMPLE.search(text)
    body = EXAMPLE.sub("", text)
    return "\n\n".join(plain(part) for part in body.split("\n\n") if part.strip()), plain(found[1]) if found else ""


def _metavar(argument: Any) -> str:  # noqa: ANN401 - see above
    word = argument.metavar or argument.name.upper()
    return str(word) if argument.required else f"[{word}]"


def _names(option: Any) -> str:  # noqa: ANN401 - see above
    return ", ".join(map(code, sorted((*option.opts, *option.secondary_opts), key=len, reverse=True)))


def _value(option: Any) -> str:  # noqa: ANN401 - see above
    if option.is_flag:
        return "switch"
    kind = option.type_descriptor.annotation
    inner = (getattr(kind, "__args__", None) or (kind,))[0]
    if isinstance(inner, type) and issubclass(inner, Enum):
        return ", ".join(code(item.value) for item in inner)
    words = {"str": "text", "int": "number", "Path": "path", "datetime": "day (YYYY-MM-DD)"}
    return words.get(inner.__name__, inner.__name__) + (", repeatable" if option.multiple else "")


def _meaning(option: Any) -> str:  # noqa: ANN401 - see above
    default = option.default.value if isinstance(option.default, Enum) else option.default
    text = option.help or ""
    if default in (None, False) or option.is_flag:
        return text + (" Required." if option.required else "")
    return f"{text} Default: {code(cell(default))}."


def _exits(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - see above
    source = inspect.getsource(inspect.unwrap(command.callback))
    if "Exit.REFUSED" in source and name not in REFUSALS:
        raise LookupError(f"'enginehouse {name}' exits 3; say when in REFUSALS of {__name__}")
    if name in FAILURES:
        yield f"- Exits 1: {FAILURES[name]}."
    if name in REFUSALS:
        yield f"- Exits 3: {REFUSALS[name]}."
    if name.rpartition(" ")[2] in CHANGES:
        yield "- Exits 4: it does not exist, it was changed meanwhile, or something else owns it."
    elif "NOT_FOUND" in source or name.endswith(" get"):
        yield "- Exits 4: it does not exist."
