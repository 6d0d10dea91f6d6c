"""The addresses of the project on PyPI, and a check of its files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# in the package, a link to the folder of the repository
MACROS = "dbt/include/openmirroring/macros"

_RELATIVE_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s]+)")


def absolute_links(markdown: str, repository: str, tag: str) -> str:
    """Point links to files of the repository, for pages outside of it.

    Args:
        markdown: with links relative to the root of the repository
        repository: its URL
        tag: of the files
    """

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1].endswith((".png", ".svg")) else "blob"
        return f"{repository}/{kind}/{tag}/{link[1]}"

    return _RELATIVE_LINK.sub(absolute, markdown)


class ProjectMetadata(MetadataHookInterface):
    """Takes the address of the repository from where `mkdocs.yml` takes it: `REPOSITORY_URL`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README, with links that work on PyPI, and the URLs.

        A build that does not know the address has no URLs, and leaves the links as they are.

        Args:
            metadata: the table `project` of `pyproject.toml`, with the version

        Raises:
            FileNotFoundError: if the package would have no macros
        """
        if not (Path(self.root) / MACROS).is_dir():
            raise FileNotFoundError(
                f"{MACROS} is no folder: Git has checked out a file in place of the link. On "
                "Windows, switch on the developer mode. Then: git config core.symlinks true && "
                f"git checkout -- {MACROS}"
            )
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")
        if repository:
            readme = absolute_links(readme, repository, f"v{metadata['version']}")
            metadata["urls"] = {
                "Documentation": f"{repository}/blob/main/docs/index.md",
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Security": f"{repository}/security/policy",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
