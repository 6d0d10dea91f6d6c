"""A Dockerfile, of which the steps are taken in a folder of this machine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.recipes.recipe import Recipe

# what the test has done otherwise: the environment has the packages, and there is one user
_DONE = re.compile(r"pip install|useradd")


class Dockerfile:
    """The steps of a Dockerfile.

    Args:
        context: the folder of the Dockerfile, from which files are copied
        image: the recipe in whose folder the image is built
    """

    def __init__(self, context: Path, image: Recipe) -> None:
        self._context = context
        self._image = image
        lines = re.sub(r"\\\n", " ", (context / "Dockerfile").read_text()).splitlines()
        self._steps = [line.partition(" ")[::2] for line in lines if re.match(r"[A-Z]", line)]
        self.environment: dict[str, str] = {}
        for _, variables in self._of("ENV"):
            for variable in variables.split():
                name, _, value = variable.partition("=")
                self.environment[name] = value

    def build(self, environment: dict[str, str]) -> Iterator[str]:
        """Take the steps, and yield what each command prints."""
        for step, arguments in self._steps:
            if step == "COPY":
                *sources, _ = (each for each in arguments.split() if not each.startswith("--"))
                for source in sources:
                    self._copy(source)
            elif step == "RUN" and not _DONE.search(arguments):
                result = self._image.shell(arguments, {**environment, **self.environment})
                assert not result.returncode
                yield result.stdout

    @property
    def command(self) -> str:
        [(_, command)] = self._of("CMD")
        return " ".join(json.loads(command))

    def _of(self, step: str) -> list[tuple[str, str]]:
        return [each for each in self._steps if each[0] == step]

    def _copy(self, name: str) -> None:
        ignored = (self._context / ".dockerignore").read_text().replace("/", "").split()
        if (self._context / name).is_file():
            shutil.copy2(self._context / name, self._image.folder)
        else:
            shutil.copytree(
                self._context / name,
                self._image.folder,
                ignore=shutil.ignore_patterns(*ignored),
                dirs_exist_ok=True,
            )
