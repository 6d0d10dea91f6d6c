"""A disk that is full, and a clock that jumps: nothing is lost, and the next run goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone import batch
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from tests.functional.project import Project
from tests.variants import some

pytestmark = pytest.mark.needs(local="disks of this machine")

KEYED: dict[str, Any] = {"unique_key": "id", "target_file_size": "4kb"}


class Disk:
    """A small file system of its own."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "_filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    def mend(self) -> None:
        self._filler.unlink(missing_ok=True)


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Disk]:
    """Mount a disk of a size at a folder."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system of a given size takes root")
    folder.mkdir(parents=True)
    try:
        _call("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this machine does not let root mount: {error.stderr.decode()}")
    try:
        yield Disk(folder)
    finally:
        # lazily: Spark keeps a file open that it could not write
        _call("umount", "--lazy", str(folder))


@pytest.fixture
def disk(project: Project) -> Iterator[Disk]:
    """The disk of the landing zone."""
    with mounted(project.landing_zone, "8m") as disk:
        yield disk


def model(project: Project, n: int, name: str = "v") -> None:
    project.model(f"select id, sha2(concat(id, {n}), 512) as {name} from range(60)", **KEYED)


def test_a_disk_that_is_full_while_spark_stages_changes_nothing(
    project: Project, disk: Disk
) -> None:
    for n in (1, 2):  # an initial load, then a change set
        before = project.files()
        model(project, n)
        disk.fill()

        message = project.fail()

        assert "No space left on device" in message
        assert project.files() == before
        project.assert_tidy()
        disk.mend()
        project.run()
        project.assert_mirrored()


@pytest.mark.parametrize("operation", some(["create", "rename", "write", "delete"], 2))
@pytest.mark.parametrize("publication", some(["changes", "rebuild"]))
def test_a_disk_that_is_full_within_a_publication_is_reported_and_the_next_run_finishes(
    project: Project,
    disk: Disk,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    publication: str,
) -> None:
    """Right before the manifest, the first renamed file, the journal, or the clean-up."""
    model(project, 1)
    project.run()
    model(project, 2, name="v" if publication == "changes" else "renamed")
    method = getattr(LocalStorage, operation)

    def failing(self: LocalStorage, path: str, *args: Any) -> None:
        if "/_debug/" not in path:  # the check before the first node
            disk.fill()
        method(self, path, *args)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, operation, failing)
        succeeded = project.dbt("run")

    if succeeded:  # there is room for another name
        assert operation in ("rename", "delete")
    else:
        message = str(project.results()["orders"]["message"])
        assert "No space left" in message
        assert "Check that `landing_zone` in the profile" in message
    disk.mend()
    project.run()
    project.assert_mirrored()


def test_a_clock_that_jumps_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, years in enumerate((0, -20, 30, -1)):

        class Clock(datetime):
            shift = timedelta(days=365 * years)

            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return datetime.now(tz) + cls.shift

        monkeypatch.setattr(batch, "datetime", Clock)
        project.model(f"select id, {n} as v from range({5 + n})", **KEYED)

        assert project.run()["last_file"] == f"{n + 1:020}.parquet"
        assert project.run()["publication"] == "unchanged"

    project.assert_mirrored()
