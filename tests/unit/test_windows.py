"""What Windows does otherwise, and that every module can be imported there.

`make test-windows` runs these and more tests with a Python for Windows.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hatchling.metadata.plugin.interface import MetadataHookInterface

import hatch_build
from dbt.adapters.openmirroring.disk.patience import patiently
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    NotPlainError,
)
from dbt.adapters.openmirroring.landing_zone.local.storage import (
    LocalStorage,
    file_url,
    move,
    oddity,
)
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable
from tests.unit.replicator.item import Item, rows

# Python's own modules and packages of others are imported first: they know Windows. Then the names
# are hidden that Windows lacks, and every module of the adapter is imported anew.
IMPORT_WITHOUT_POSIX = """
import importlib, os, pkgutil, sys, time
import dbt.adapters.openmirroring as package

prefix = package.__name__ + "."
found = pkgutil.walk_packages(package.__path__, prefix)
names = [module.name for module in found if "__main__" not in module.name]
for name in names:
    importlib.import_module(name)
for name in names:
    del sys.modules[name]
for name in ("fcntl", "grp", "posix", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "getuid", "geteuid",
             "killpg", "mkfifo", "nice", "pread", "sched_getaffinity", "setsid", "statvfs",
             "sysconf", "uname"):
    delattr(os, name) if hasattr(os, name) else None
for name in ("clock_gettime", "tzset"):
    delattr(time, name) if hasattr(time, name) else None
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def test_no_module_needs_at_import_what_windows_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_WITHOUT_POSIX], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


HOLD = """
import sys, time
from pathlib import Path
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
with LocalStorage(Path(sys.argv[1])).lock("_scratchPad/sales.orders"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
def on_windows(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given Windows, as far as this adapter asks which system it is on, but with paths of here."""
    monkeypatch.setattr(sys, "platform", "win32")


def test_a_table_is_held_by_one_process_and_free_when_that_is_killed(
    storage: LocalStorage, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout
    assert holder.stdout.readline().strip() == b"held"
    with pytest.raises(ConcurrentPublicationError), storage.lock("_scratchPad/sales.orders"):
        pass

    holder.kill()
    holder.communicate()

    with storage.lock("_scratchPad/sales.orders"):
        pass


@pytest.fixture
def item(on_windows: None, tmp_path: Path) -> Item:
    """Given a mirrored database with a table and two files that are to be applied."""
    item = Item(tmp_path / "mirror.MirroredDatabase")
    item.keyed()
    item.land_all(rows((1, "a"), (2, "b")), rows((2, "c", 4)))
    return item


def test_the_replicator_applies_files_and_moves_them_away(item: Item) -> None:
    assert item.scan().status == "Replicating"

    assert item.rows() == [(1, "a"), (2, "c")]
    assert item.left() == ["2.parquet"]
    monitoring = item.path / "Files" / "Monitoring"
    assert {"tables.json", "replicator.json"} <= {path.name for path in monitoring.iterdir()}


@pytest.mark.parametrize(("refusals", "status"), [(3, "Replicating"), (100, "Failed")])
def test_a_file_that_another_program_reads_is_moved_later_and_applied_once(
    item: Item, monkeypatch: pytest.MonkeyPatch, refusals: int, status: str
) -> None:
    rename, left = os.rename, [PermissionError(errno.EACCES, "in use")] * refusals

    def refused(*args: Any, **options: Any) -> None:
        if left:
            raise left.pop()
        rename(*args, **options)

    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(os, "rename", refused)
    assert item.scan().status == status
    left.clear()

    assert item.scan().status == "Replicating"

    assert item.rows() == [(1, "a"), (2, "c")]
    assert item.left() == ["2.parquet"]


def test_a_table_folder_that_is_recreated_meanwhile_is_neither_marked_nor_emptied(
    item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = MirroredTable.append

    def recreated_meanwhile(self: MirroredTable, *args: Any) -> int | None:
        count = append(self, *args)
        # not deleted, because systems other than Windows may give its number to the new one
        item.folder().rename(item.path / "former")
        item.keyed()
        item.land_all(rows((1, "new")), rows((2, "new", 4)))
        return count

    with monkeypatch.context() as patched:
        patched.setattr(MirroredTable, "append", recreated_meanwhile)
        item.replicator.scan()
    assert item.left() == ["1.parquet", "2.parquet"]

    item.scan()

    assert item.rows() == [(1, "new"), (2, "new")]


@pytest.mark.parametrize(("times", "is_done"), [(3, True), (100, False)])
def test_a_file_that_a_virus_scanner_holds_is_tried_again_for_seconds(
    on_windows: None, monkeypatch: pytest.MonkeyPatch, times: int, is_done: bool
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    call = Mock(side_effect=[*[PermissionError(errno.EACCES, "in use")] * times, "done"])

    if is_done:
        assert patiently(call) == "done"
        assert len(waited) == times
    else:
        with pytest.raises(PermissionError):
            patiently(call)
        assert 1 < sum(waited) < 10


on_nt = pytest.mark.skipif(os.name != "nt", reason="only Windows does it so")


@on_nt
def test_a_file_that_another_program_closes_soon_is_moved(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    scanner = (tmp_path / "a").open("rb")
    timer = threading.Timer(0.2, scanner.close)
    timer.start()

    move(tmp_path / "a", tmp_path / "b")

    timer.join()
    assert (tmp_path / "b").read_bytes() == b"1"


# the child has the output too, so this ends when both have ended
PARENT = """
import subprocess, sys, time
from dbt.adapters.openmirroring.spark.embedded.windows import end_with_this_process
command = [sys.executable, "-c", "import time; time.sleep(600)"]
end_with_this_process(subprocess.Popen(command, stdout=sys.stdout))
print("started", flush=True)
time.sleep(600)
"""


@on_nt
def test_a_jvm_that_is_starting_ends_when_its_command_is_killed() -> None:
    command = [sys.executable, "-c", PARENT]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout
    assert parent.stdout.readline().strip() == b"started"

    parent.kill()

    assert parent.communicate(timeout=60)[0] == b""


@on_nt
@pytest.mark.skipif("WINEPREFIX" in os.environ, reason="Wine does not resolve such a path")
def test_a_path_may_be_longer_than_260_characters(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "LandingZone")
    path = "/".join(["x" * 100] * 4)

    storage.write(path, b"1")

    assert storage.read(path) == b"1"
    storage.delete("x" * 100)
    assert storage.list("") == []


@on_nt
def test_a_folder_that_is_there_in_another_case_is_refused(storage: LocalStorage) -> None:
    storage.write("sales.schema/Orders/_journal.json", b"1")

    with pytest.raises(NotPlainError, match=r"is there as 'Orders'.*`alias`"):
        storage.read("sales.schema/orders/_journal.json")


@pytest.mark.parametrize(
    ("mode", "tag", "is_link"),
    [
        (stat.S_IFDIR, 0xA0000003, True),  # a junction
        (stat.S_IFLNK, 0xA000000C, True),
        (stat.S_IFREG, 0x9000001A, False),  # a file that OneDrive has not downloaded yet
        (stat.S_IFDIR, 0, False),
    ],
)
def test_a_junction_is_a_link_and_a_placeholder_of_onedrive_is_none(
    mode: int, tag: int, is_link: bool
) -> None:
    state: Any = SimpleNamespace(st_mode=mode | 0o700, st_reparse_tag=tag)

    assert (oddity(state) == "a link") == is_link


@on_nt
def test_the_url_of_a_path_of_windows_has_its_drive() -> None:
    assert file_url(Path("C:\\zone\\a b")) == "file:///C:/zone/a b"


def test_a_checkout_without_links_is_not_packaged(tmp_path: Path) -> None:
    macros = tmp_path / hatch_build.MACROS
    macros.parent.mkdir(parents=True)
    macros.write_text("../../../macros")
    hook: MetadataHookInterface = hatch_build.ProjectMetadata(str(tmp_path), {})

    with pytest.raises(FileNotFoundError, match=r"git config core.symlinks true"):
        hook.update({})
