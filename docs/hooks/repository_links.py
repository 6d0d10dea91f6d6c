"""Links from the pages to other files of the repository, which are not part of the site."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_event: Any) -> str:
    """Point these links to the repository; without its address only their text stays.

    Args:
        markdown: of a page in the folder `docs`, or in a folder of it
        page: of MkDocs; `file.src_uri` is its path in `docs`
        config: of MkDocs, with `repo_url`
    """
    # such a link leaves `docs`
    outside = re.escape("../" * (page.file.src_uri.count("/") + 1))
    repository = (config.repo_url or "").rstrip("/")
    link = rf"[\1]({repository}/blob/main/\2)" if repository else r"\1"
    return re.sub(rf"\[([^\]]+)\]\({outside}([^)\s]+)\)", link, markdown)
