"""The addresses of the project on PyPI."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RepositoryUrls(MetadataHookInterface):
    """Takes the address of the repository from where `mkdocs.yml` takes it: `REPOSITORY_URL`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the URLs; a build that does not know the address has none.

        Args:
            metadata: the table `project` of `pyproject.toml`
        """
        repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")
        if repository:
            metadata["urls"] = {
                "Documentation": f"{repository}/blob/main/docs/index.md",
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            }
