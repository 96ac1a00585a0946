"""Links that readers of the repository follow, as the site needs them: the site has ``results`` and no other folder."""

from __future__ import annotations

import re
from typing import Any

PLACES = r"examples|README|CHANGELOG|(?:studies/)?src|studies/\S*(?:tables|\.md)"
OUTSIDE = re.compile(rf"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>(?:{PLACES})[^)#]*)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with links to results inside ``docs``, and files outside of it by their names. MkDocs calls this."""
    return OUTSIDE.sub(r"\g<text> (`\g<path>` in the repository)", markdown).replace("](../studies/results/", "](results/")
