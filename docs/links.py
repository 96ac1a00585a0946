"""Pages link to ``../results``, where readers of the repository find it; the site has the same folder inside ``docs``."""

from __future__ import annotations

from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its links to results as the site needs them. MkDocs calls this for every page."""
    return markdown.replace("](../results/", "](results/")
