"""A command group that imports a command only when it runs, so that ``--help`` stays quick."""

import importlib
from dataclasses import dataclass
from typing import ClassVar

import typer
from typer._click import Command, Context, HelpFormatter
from typer.core import TyperCommand, TyperGroup

from fleet.nearest import did_you_mean


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command lives and the line that help shows for it."""

    module: str
    attribute: str
    help: str
    panel: str


class LazyGroup(TyperGroup):
    """A group whose commands come from `table`; subclasses fill it."""

    table: ClassVar[dict[str, Lazy]] = {}

    def list_commands(self, ctx: Context) -> list[str]:
        """The names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command if it was loaded, else a line for help."""
        loaded = self.commands.get(cmd_name)
        if loaded is not None or cmd_name not in self.table:
            return loaded
        entry = self.table[cmd_name]
        return TyperCommand(name=cmd_name, help=entry.help, short_help=entry.help, rich_help_panel=entry.panel)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The commands below the heading of their panel, without importing any of them."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.table.items():
            panels.setdefault(entry.panel, []).append((name, entry.help))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Import the command that was named, then resolve as usual."""
        name = args[0] if args else ""
        if name in self.table and name not in self.commands:
            self.commands[name] = _load(name, self.table[name])
        if name and not name.startswith("-") and name not in self.commands:
            ctx.fail(f"no command '{name}'{did_you_mean(name, self.table)}")
        return super().resolve_command(ctx, args)


def _load(name: str, entry: Lazy) -> Command:
    found = getattr(importlib.import_module(entry.module), entry.attribute)
    if isinstance(found, typer.Typer):
        command = typer.main.get_group(found) if _is_group(found) else typer.main.get_command(found)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode="rich")
        single.command(name)(found)
        command = typer.main.get_command(single)
    command.name = name
    return command


def _is_group(app: typer.Typer) -> bool:
    return bool(app.registered_groups) or len(app.registered_commands) > 1 or app.registered_callback is not None
