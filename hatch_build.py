"""The addresses of the project on PyPI, and a check of its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# in the package, a link to the folder of the repository
MACROS = "dbt/include/openmirroring/macros"


class ProjectMetadata(MetadataHookInterface):
    """Takes the address of the repository from where `mkdocs.yml` takes it: `REPOSITORY_URL`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the URLs; a build that does not know the address has none.

        Args:
            metadata: the table `project` of `pyproject.toml`

        Raises:
            FileNotFoundError: if the package would have no macros
        """
        if not (Path(self.root) / MACROS).is_dir():
            raise FileNotFoundError(
                f"{MACROS} is no folder: Git has checked out a file in place of the link. On "
                "Windows, switch on the developer mode. Then: git config core.symlinks true && "
                f"git checkout -- {MACROS}"
            )
        repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")
        if repository:
            metadata["urls"] = {
                "Documentation": f"{repository}/blob/main/docs/index.md",
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Security": f"{repository}/security/policy",
            }
