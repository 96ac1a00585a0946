"""Run notebooks and keep what they show inside them, so that a reader sees it on a code host without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600


def notebooks() -> list[Path]:
    """All notebooks of the project."""
    return sorted((ROOT / "examples").glob("*.ipynb"))


def executed(path: Path, folder: Path) -> Any:
    """The notebook with what its cells show now, run from top to bottom in a folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", record_timing=False, resources={"metadata": {"path": str(folder)}}
    ).execute()
    notebook.metadata.language_info = {"name": "python"}  # and not the version of this Python
    return notebook


def shown(notebook: Any) -> list[str]:
    """What each cell shows, as text; of a picture, that there is one."""
    return ["\n".join(map(_text, cell.get("outputs", []))) for cell in notebook.cells if cell.cell_type == "code"]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text)
    return "a picture" if "image/png" in output.data else str(output.data["text/plain"])
