"""A site's certificate request. It needs no data, no plan and no slow import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dffl.deploy.credentials import make_request, read_request, require_site_name
from dffl.deploy.network import nvflare_version
from dffl.terminal import command_name

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class CommandResult:
    """The result of a command: lines for people, values for programs."""

    lines: list[str]
    values: dict[str, Any]

    def show(self, console: Console) -> None:
        for line in self.lines:
            console.print(line, soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        return self.values


def request(name: str, folder: Path, new_key: bool = False) -> CommandResult:
    """Create a site's private key and its request to the coordinator; other files of the folder are kept."""
    nvflare_version()
    require_site_name(name, "NAME")
    if (folder / "site.key").exists() and not new_key:
        raise ValueError(f"{folder / 'site.key'}: already exists; --new-key replaces it, and its kit becomes invalid")
    path = make_request(folder, name)
    fingerprint = read_request(path)[2]
    dffl = command_name()
    return CommandResult(
        [f"wrote {folder / 'site.key'} (private: it never leaves this machine)", f"wrote {path}",
         f"fingerprint {fingerprint}", "",
         f"Next, send {path.name} to the coordinator, who sends back {name}.kit. Then type:", "",
         f"  {dffl} site check {name}.kit --client site.toml",
         f"  {dffl} site join {name}.kit --client site.toml --folder {folder}"],
        {"site": name, "request": str(path), "fingerprint": fingerprint, "folder": str(folder)},
    )  # fmt: skip
