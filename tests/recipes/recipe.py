"""A recipe of docs/scheduling.md, set up as it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from tests.matrix import PYTHON, ROOT, install
from tests.pages import blocks_of, text_of

# where pages have the project
FOLDER = "/srv/shop"

# the page and the section that have the project of all recipes
SCHEDULING = "scheduling"
PROJECT = "The project"

LANDING_ZONE = Path("mirror.MirroredDatabase", "Files", "LandingZone")

_COMMAND = re.compile(r"^\$ (.+(?:(?<=\\)\n.+)*)", re.MULTILINE)


def published(landing_zone: Path) -> dict[str, list[int]]:
    """The numbers of rows in the files of each mirrored table, also of those that were applied."""
    return {
        folder.name: [
            pq.read_metadata(file).num_rows
            for file in sorted(folder.rglob("*.parquet"), key=lambda file: file.name)
        ]
        for folder in (landing_zone / "sales.schema").glob("*")
    }


def comparable(output: str) -> str:
    """An output without colours, seconds and the number of dots."""
    plain = re.sub(r"\x1b\[\d*m| in \d+\.\d+s", "", output)
    return re.sub(r"\.{3,}", "...", plain)


@dataclass(frozen=True)
class Recipe:
    """A section on scheduling, with its files in a folder and its packages in an environment.

    Args:
        section: its headline
        folder: in place of `/srv/shop`
    """

    section: str
    folder: Path

    def set_up(self, *packages: str) -> None:
        """Write the files of the section over those of the project, and install its packages.

        Args:
            packages: others to install
        """
        self.take(SCHEDULING, PROJECT)
        self.take(SCHEDULING, self.section)
        (self.folder / ".venv").symlink_to(self._install(packages))

    def take(self, page: str, section: str = "") -> None:
        """Write the files of a page, or of one of its sections."""
        for block in blocks_of(ROOT / "docs" / f"{page}.md", section):
            if block.title and " " not in block.title:
                self.write(block.title, block.text)

    def write(self, name: str, text: str) -> None:
        """Write a file of the section."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(FOLDER, str(self.folder)))

    def replace(self, name: str, old: str, new: str) -> None:
        """Change a file."""
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def commands(self) -> list[str]:
        """The commands of the section, without those that install or look at something."""
        found = [
            command.replace(FOLDER, str(self.folder))
            for block in blocks_of(ROOT / "docs" / f"{SCHEDULING}.md", self.section)
            for command in _COMMAND.findall(block.text)
        ]
        return [each for each in found if not each.startswith(("pip ", "python -m venv"))]

    def shown(self) -> list[str]:
        """The lines of output in the section, to be found in what was really printed."""
        return [
            comparable(line.removeprefix("... "))
            for block in blocks_of(ROOT / "docs" / f"{SCHEDULING}.md", self.section)
            if block.language == "console"
            for line in _COMMAND.sub("", block.text).splitlines()
            if line not in ("", "...")
        ]

    def shell(
        self, command: str, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder, with the programs of the environment."""
        path = f"{self.folder}/.venv/bin:{os.environ['PATH']}"
        result = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=self.folder,
            env={"HOME": os.environ["HOME"], "PATH": path, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"$ {command}\n{result.stdout}{result.stderr}")
        return result

    def published(self) -> dict[str, list[int]]:
        """The numbers of rows in the files of each mirrored table."""
        return published(self.folder / LANDING_ZONE)

    def _install(self, others: Sequence[str]) -> Path:
        (line,) = re.findall(
            r"^ *(?:\$|- run:) pip install (.+)$",
            text_of(ROOT / "docs" / f"{SCHEDULING}.md", self.section),
            re.MULTILINE,
        )
        project, *packages = shlex.split(line)
        extras = re.findall(r"\w+", project.partition("[")[2])
        environment = ROOT / "build" / "recipes" / self.section.lower().replace(" ", "-")
        install(environment, PYTHON, extras, [*packages, *others])
        return environment
