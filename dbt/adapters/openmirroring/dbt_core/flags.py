"""The command that dbt runs, its flags and its folders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from dbt.adapters.contracts.connection import AdapterRequiredConfig

# dbt commands that build nodes, that run tests, that read tables, and that always run statements
# in Spark
_BUILDING = ("run", "build", "seed", "snapshot", "retry")
_TESTING = ("test", "build", "retry")
_READING = (*_BUILDING, "test", "show")
_USING_SPARK = (*_READING, "clone", "generate")


def _flags() -> Any:
    # dbt loads the adapter before its flags can be imported
    from dbt.flags import get_flags

    return get_flags()


def command() -> str | None:
    """Return the name of the command, e.g. `run`; None outside of commands."""
    name: str | None = getattr(_flags(), "WHICH", None)
    return name


def uses_spark() -> bool:
    """Check whether the command always runs statements in Spark."""
    return command() in _USING_SPARK


def reads_tables() -> bool:
    """Check whether the command reads the tables of the project."""
    return command() in _READING


def is_building() -> bool:
    """Check whether the command builds nodes, perhaps with `--empty` or `--sample`."""
    return command() in _BUILDING


def is_publishing() -> bool:
    """Check whether the command builds nodes with all their rows."""
    return is_building() and _has_all_rows()


def is_testing() -> bool:
    """Check whether the command may run data tests on all rows."""
    return command() in _TESTING and _has_all_rows()


def is_running_hooks() -> bool:
    """Check whether the command runs the hooks of the project."""
    return command() in (*_BUILDING, *_TESTING)


def _has_all_rows() -> bool:
    return not (getattr(_flags(), "EMPTY", False) or getattr(_flags(), "SAMPLE", None))


def is_in_command() -> bool:
    """Check whether a dbt command is running.

    An orchestrator may also create adapters outside its dbt commands.
    """
    context = click.get_current_context(silent=True)
    main = sys.modules.get("dbt.cli.main")
    return context is not None and main is not None and context.find_root().command is main.cli


def prefers_other_state() -> bool:
    """Check whether dbt reads nodes that it does not build in the state of another target."""
    flags = _flags()
    return bool(getattr(flags, "DEFER", False) and getattr(flags, "FAVOR_STATE", False))


def selected() -> Sequence[str]:
    """Return the unique ids of what the command has selected; none with `dbt retry`."""
    from dbt import selected_resources

    # with `retry`, dbt has those of an earlier command
    return () if command() == "retry" else selected_resources.SELECTED_RESOURCES


def terminal() -> Callable[[str], None] | None:
    """Return a function that prints a line to the terminal.

    Returns:
        None if stderr is no terminal, or if dbt's own lines are not printed there as text
    """
    flags = _flags()
    is_shown = getattr(flags, "LOG_LEVEL", "info") in ("debug", "info")
    is_text = getattr(flags, "LOG_FORMAT", "default") != "json"
    if getattr(flags, "QUIET", False) or not (is_shown and is_text and sys.stderr.isatty()):
        return None
    # the line break is part of the string, because other threads of dbt print meanwhile
    return lambda line: print(f"{line}\n", end="", file=sys.stderr, flush=True)


def project_folder(profile: AdapterRequiredConfig) -> Path:
    """Return the folder of the dbt project.

    `dbt debug` has only a profile without a project, so the folder comes from its flags.
    """
    root = getattr(profile, "project_root", None) or getattr(_flags(), "PROJECT_DIR", None)
    return Path(root or ".").resolve()


def target_folder(profile: AdapterRequiredConfig) -> Path:
    """Return dbt's own folder in the dbt project."""
    return project_folder(profile) / getattr(profile, "target_path", "target")


def keep_out_of_git(folder: Path, project: Path) -> None:
    """Let Git ignore a folder, unless it has rules of its own or contains the dbt project."""
    project = project.resolve()
    with suppress(OSError):
        if any(map(folder.samefile, (project, *project.parents))):
            return
        with (folder / ".gitignore").open("x", encoding="utf-8") as rules:
            rules.write("*\n")
