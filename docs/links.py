"""Links that readers of the repository follow, as the site needs them: the site has ``results`` and no other folder."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>(?:examples|README|CHANGELOG|src|studies/src|studies/\S*tables|studies/\S*\.md)[^)#]*)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with links to results inside ``docs``, and files outside of it by their names. MkDocs calls this."""
    return OUTSIDE.sub(r"\g<text> (`\g<path>` in the repository)", markdown).replace("](../studies/results/", "](results/")
