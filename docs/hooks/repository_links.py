"""Links from the pages to other files of the repository, which are not part of the site."""

from __future__ import annotations

import re
from typing import Any

# [text](../path), with an anchor or not
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)\s]+)\)")


def on_page_markdown(markdown: str, *, config: Any, **_event: Any) -> str:
    """Point these links to the repository; without its address only their text stays.

    Args:
        markdown: of a page in the folder `docs`
        config: of MkDocs, with `repo_url`
    """
    repository = (config.repo_url or "").rstrip("/")
    link = rf"[\1]({repository}/blob/main/\2)" if repository else r"\1"
    return _LINK.sub(link, markdown)
