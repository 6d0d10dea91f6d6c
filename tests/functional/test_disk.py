"""A disk that is full, read-only or in use: nothing is lost, and the next run goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone import batch
from dbt.adapters.openmirroring.landing_zone.local import storage as local
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from tests.functional.project import Project
from tests.variants import some

pytestmark = pytest.mark.local("disks of this machine")

KEYED: dict[str, Any] = {"unique_key": "id", "target_file_size": "4kb"}


class Disk:
    """A small file system of its own that holds the landing zone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._filler = folder / "_filler"
        self._is_read_only = False

    def mount(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _call("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder))

    def unmount(self, folder: Path) -> None:
        # lazily: Spark keeps a file open that it could not write
        _call("umount", "--lazy", str(folder))

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    def make_read_only(self) -> None:
        """Mount it once more, because Linux keeps a mount writable that has an open file."""
        if not self._is_read_only:
            _call("mount", "--bind", str(self._folder), str(self._folder))
            _call("mount", "-o", "remount,bind,ro", str(self._folder))
            self._is_read_only = True

    def mend(self) -> None:
        if self._is_read_only:
            self.unmount(self._folder)
            self._is_read_only = False
        self._filler.unlink(missing_ok=True)


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def disk(project: Project) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("mounting a file system of a given size takes root")
    created = Disk(project.landing_zone)
    try:
        created.mount(project.landing_zone)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this machine does not let root mount: {error.stderr.decode()}")
    yield created
    created.unmount(project.landing_zone)


def model(project: Project, n: int, rows: int = 60, columns: str = "") -> None:
    project.model(
        f"select id, sha2(concat(id, {n}), 512) as v{columns} from range({rows})", **KEYED
    )


@pytest.mark.core
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


@pytest.mark.parametrize("problem", some(["fill", "make_read_only"]))
@pytest.mark.parametrize("operation", some(["create", "rename", "write", "delete"], 2))
@pytest.mark.parametrize("publication", some(["changes", "rebuild"]))
def test_a_disk_that_fails_within_a_publication_is_reported_and_the_next_run_finishes(
    project: Project,
    disk: Disk,
    monkeypatch: pytest.MonkeyPatch,
    problem: str,
    operation: str,
    publication: str,
) -> None:
    """It fails right before the manifest, the first renamed file, the journal, or the clean-up."""
    model(project, 1)
    project.run()
    model(project, 2, columns=", 1 as new" if publication == "rebuild" else "")
    options = {**KEYED, "on_breaking_change": "rebuild"}
    if publication == "rebuild":
        project.model("select id, sha2(concat(id, 2), 512) as renamed from range(60)", **options)
    method = getattr(LocalStorage, operation)

    def failing(self: LocalStorage, path: str, *args: Any) -> None:
        if "/_debug/" not in path:  # the check before the first node
            getattr(disk, problem)()
        method(self, path, *args)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, operation, failing)
        succeeded = project.dbt("run")

    message = str(project.results()["orders"]["message"])
    if succeeded:  # a full disk has room for another name
        assert problem == "fill"
        assert operation in ("rename", "delete")
    else:
        assert "No space left" in message or "Read-only file system" in message
        assert "Check that `landing_zone` in the profile" in message
    disk.mend()
    project.run()
    project.assert_mirrored()


def test_a_table_folder_in_use_is_left_to_the_next_run_to_drop(
    project: Project, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_PAUSES", (0.01, 0.02))
    project.model("select id, 1 as a from range(9)", **KEYED)
    project.run()
    in_use = project.folder() / "in_use"
    disk.mount(in_use)
    project.model("select id, 1 as b from range(9)", **KEYED)
    with ExitStack() as mounted:
        mounted.callback(disk.unmount, in_use)

        assert "Device or resource busy" in project.fail()
        assert "Device or resource busy" in project.fail(), "it is still in use"

    project.run()
    project.assert_mirrored()
    assert [file.name for file in project.files()] == ["00000000000000000001.parquet"]


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
