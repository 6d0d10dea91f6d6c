"""Folders with rows of tables, which do not belong into a Git repository."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def keep_out_of_git(folder: Path, project: Path) -> None:
    """Let Git ignore all that is in a folder, unless it has rules of its own.

    Args:
        project: the dbt project; a folder that contains it is left alone
    """
    if project.is_relative_to(folder):
        return
    with suppress(OSError), (folder / ".gitignore").open("x", encoding="utf-8") as rules:
        rules.write("*\n")
