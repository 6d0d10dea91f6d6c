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
        text = (context / "Dockerfile").read_text().replace("\\\n", " ")
        self._steps = re.findall(r"^([A-Z]+) (.+)$", text, re.MULTILINE)
        variables = " ".join(self._of("ENV")).split()
        self.environment = dict(variable.split("=", 1) for variable in variables)

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
        [command] = self._of("CMD")
        return " ".join(json.loads(command))

    def _of(self, step: str) -> list[str]:
        return [arguments for each, arguments in self._steps if each == step]

    def _copy(self, name: str) -> None:
        source, target = self._context / name, self._image.folder
        if source.is_file():
            shutil.copy2(source, target)
        else:
            names = (self._context / ".dockerignore").read_text().replace("/", "").split()
            ignored = shutil.ignore_patterns(*names)
            shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
