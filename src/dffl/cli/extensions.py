"""Commands of other packages, next to dffl's own: found by entry points, imported when they are listed or called."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import typer
from typer.core import TyperGroup

from dffl.plugins import Plugin, Plugins, plugins


class Commands(TyperGroup):
    """dffl's own commands, then those of other packages. One that cannot be used is named; the others work."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._own = frozenset(self.commands)

    @cached_property
    def _brought(self) -> Plugins:
        return plugins("dffl.commands", self._own)

    def list_commands(self, ctx: Any) -> list[str]:
        plugins_found = self._brought
        for problem in plugins_found.problems.values():
            warnings.warn(problem, stacklevel=2)
        for name in plugins_found.usable:
            self.get_command(ctx, name)
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = super().get_command(ctx, cmd_name)
        if known is not None:
            return known
        plugins_found = self._brought
        try:
            if cmd_name in plugins_found.problems:
                raise ValueError(plugins_found.problems[cmd_name])
            if cmd_name in plugins_found.usable:
                self.commands[cmd_name] = _as_command(plugins_found.usable[cmd_name])
        except ValueError as error:
            warnings.warn(str(error), stacklevel=2)
        return self.commands.get(cmd_name)


def _as_command(plugin: Plugin) -> Any:
    """A command from a function with Typer's annotations, or a group of commands from a `typer.Typer`."""
    brought: Any = plugin.load()
    panel = f"Commands of {plugin.package}"
    if isinstance(brought, typer.Typer):
        command: Any = typer.main.get_group(brought)
    elif callable(brought):
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
        alone.command(plugin.name, context_settings={"help_option_names": ["-h", "--help"]})(brought)
        command = typer.main.get_command(alone)
    else:
        raise ValueError(f"{plugin.place}: must be a function or a typer.Typer, found {type(brought).__name__}")
    command.name = plugin.name
    command.rich_help_panel = panel
    return command
