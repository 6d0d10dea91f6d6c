"""A landing zone is plain folders and files: nothing in it leads outside."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.errors import (
    LandingZoneUnavailableError,
    NotPlainError,
)
from dbt.adapters.openmirroring.landing_zone.inventory import pending_batches, table_folders
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local import storage as local
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.onelake import storage as onelake
from dbt.adapters.openmirroring.landing_zone.storage import Storage, too_large
from dbt.adapters.openmirroring.operations.project_tables import (
    Outcome,
    ProjectTables,
    drop_orphans,
)
from tests.hostile_tables import contents, land_forty
from tests.hostile_tables import outside as outside_of
from tests.unit.landing_zone.publishing import TABLE, finish, leave, planned, publication, publish
from tests.unit.operations.tables import node

SECRET = b"somebody else's"

Operation = Callable[[Storage, str], Any]

OPERATIONS: dict[str, Operation] = {
    "url": lambda storage, path: storage.url(path),
    "list": lambda storage, path: storage.list(path),
    "collect": lambda storage, path: storage.collect(path),
    "read": lambda storage, path: storage.read(path),
    "write": lambda storage, path: storage.write(path, b"new"),
    "create": lambda storage, path: storage.create(path, b"new"),
    "rename to": lambda storage, path: storage.rename("file", path),
    "rename from": lambda storage, path: storage.rename(path, "renamed"),
    "delete": lambda storage, path: storage.delete(path),
    "lock": lambda storage, path: storage.lock(path).__enter__(),
}
OF_LOCAL: dict[str, Operation] = {
    **OPERATIONS,
    "touch": lambda storage, path: storage.touch(path, 0),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A landing zone on this machine."""
    if sys.platform == "win32":
        pytest.skip("its links need a permission, and it has no pipes in folders")
    folder = tmp_path / "LandingZone"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody else, with a file in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_bytes(SECRET)
    return folder


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "path",
    ["../outside/file", "a/../../outside/file", "/etc/hostname", "a//b", "./a", "a\0b", "a/"],
)
def test_a_path_that_could_lead_outside_is_refused(
    storage: Storage, outside: Path, operation: str, path: str
) -> None:
    storage.write("file", b"")

    with pytest.raises(NotPlainError, match="not a path in a landing zone"):
        OPERATIONS[operation](storage, path)

    assert contents(outside) == {"file": SECRET}


def test_the_landing_zone_itself_is_not_deleted(storage: Storage) -> None:
    storage.write("file", b"")

    with pytest.raises(NotPlainError):
        storage.delete("")

    assert storage.read("file") == b""


@pytest.mark.parametrize("operation", sorted(OF_LOCAL.keys() - {"url"}))
def test_a_linked_folder_is_not_entered(root: Path, outside: Path, operation: str) -> None:
    storage = LocalStorage(root)
    storage.write("file", b"")
    (root / "a").mkdir()
    (root / "a" / "linked").symlink_to(outside)
    path = "a/linked" if operation in ("list", "collect", "lock") else "a/linked/file"

    with pytest.raises(NotPlainError, match=f"{root}/a/linked is a link.*[Rr]emove"):
        OF_LOCAL[operation](storage, path)

    assert contents(outside) == {"file": SECRET}


@pytest.mark.parametrize(
    "operation", ["read", "write", "create", "touch", "rename to", "rename from"]
)
def test_a_linked_file_is_neither_read_nor_changed(
    root: Path, outside: Path, operation: str
) -> None:
    storage = LocalStorage(root)
    storage.write("file", b"")
    before = (outside / "file").stat().st_mtime_ns
    (root / "linked").symlink_to(outside / "file")

    with pytest.raises(NotPlainError, match=f"{root}/linked is a link"):
        OF_LOCAL[operation](storage, "linked")

    assert contents(outside) == {"file": SECRET}
    assert (outside / "file").stat().st_mtime_ns == before
    assert (root / "linked").is_symlink()


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_where_a_record_is_prepared_is_not_written_through(
    root: Path, outside: Path, link: Callable[[Path, Path], None]
) -> None:
    link(outside / "file", root / "__journal.json.new")
    storage = LocalStorage(root)

    storage.write("_journal.json", b"new")

    assert storage.read("_journal.json") == b"new"
    assert contents(outside) == {"file": SECRET}


def test_a_deleted_folder_leaves_what_its_links_point_to(root: Path, outside: Path) -> None:
    storage = LocalStorage(root)
    storage.write("a/b/c", b"")
    (root / "a" / "b" / "folder").symlink_to(outside)
    (root / "a" / "file").symlink_to(outside / "file")
    (root / "linked").symlink_to(outside)

    storage.delete("a")
    storage.delete("linked")

    assert storage.list("") == []
    assert contents(outside) == {"file": SECRET}


def test_the_landing_zone_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(root)
    storage = LocalStorage(tmp_path / "linked")

    storage.write("a/b", b"1")

    assert (root / "a" / "b").read_bytes() == b"1"
    assert [entry.name for entry in storage.list("a")] == ["b"]


def make_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


ODDITIES: dict[str, Callable[[Path], None]] = {
    "a link": make_link,
    "neither a file nor a folder": lambda path: os.mkfifo(path),
}


@pytest.mark.parametrize("oddity", ODDITIES)
def test_what_is_no_plain_file_is_marked_in_listings_and_neither_read_nor_waited_for(
    root: Path, oddity: str
) -> None:
    ODDITIES[oddity](root / "odd")
    (root / "file").write_bytes(b"1")
    (root / "folder").mkdir()
    storage = LocalStorage(root)

    found = [(e.name, e.oddity, e.is_folder, e.size) for e in storage.list("")]

    assert found == [("file", "", False, 1), ("folder", "", True, 0), ("odd", oddity, False, 0)]
    with pytest.raises(NotPlainError, match=f"odd is {oddity}"):
        storage.read("odd")


@pytest.mark.parametrize("module", [local, onelake])
def test_a_record_of_any_size_does_not_fill_the_memory(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    storage: Storage = (
        LocalStorage(tmp_path) if module is local else request.getfixturevalue("server").storage()
    )
    monkeypatch.setattr(module, "MAX_RECORD", 10)
    assert "more than 64 MB" in str(too_large("record"))
    storage.write("fits", b"x" * 10)
    storage.write("does not", b"x" * 11)

    assert storage.read("fits") == b"x" * 10
    with pytest.raises(LandingZoneUnavailableError, match=r"does not.*more than.*Restore it"):
        storage.read("does not")


# Tables


def publish_next(storage: Storage) -> None:
    """Publish as the next run does, which looks at all that is there."""
    with publication(storage) as opened:
        if pending := opened.pending():
            finish(opened, pending)
        journal = opened.last
        assert journal
        opened.verify(journal.batch.build, rebuilds=False)
        opened.restore_metadata(journal)
        plan = planned(opened, "changes")
        storage.write(f"{opened.staged_files.folder}/part-0.parquet", b"rows")
        finish(opened, opened.commit(plan, opened.staged_files.written(plan)))


@pytest.mark.parametrize(
    "linked",
    [
        *("sales.schema", TABLE.path, TABLE.journal, TABLE.metadata),
        *(TABLE.file(1, "parquet"), f"{TABLE.path}/_ProcessedFiles"),
        f"{TABLE.path}/_ProcessedFiles/{1:020d}.parquet",
        *(TABLE.scratch, TABLE.manifest, "{staging}"),
        *("{staging}/rows", "{staging}/rows/part-0.parquet"),
    ],
)
def test_a_table_with_a_link_where_something_of_it_was_is_not_published(
    root: Path, outside: Path, linked: str
) -> None:
    storage = LocalStorage(root)
    publish(storage, "initial", [b"rows"])
    if "_ProcessedFiles" in linked:
        storage.rename(TABLE.file(1, "parquet"), f"{TABLE.path}/_ProcessedFiles/{1:020d}.parquet")
    pending = leave(storage, "changes", [b"rows"])
    linked = linked.format(staging=TABLE.staging(pending.batch.id))
    place, moved = root / linked, outside / Path(linked).name
    place.rename(moved)
    place.symlink_to(moved)
    before = contents(outside)

    with pytest.raises(NotPlainError, match=f"{linked} is a link"):
        publish_next(storage)

    assert contents(outside) == before
    place.unlink()
    moved.rename(place)
    publish_next(storage)
    assert storage.read(TABLE.file(3, "parquet")) == b"rows"


def test_a_staged_file_that_is_a_link_is_not_committed(root: Path, outside: Path) -> None:
    storage = LocalStorage(root)
    with publication(storage) as opened:
        storage.write(f"{opened.staged_files.folder}/part-0.parquet", b"rows")
        (root / opened.staged_files.folder / "part-1.parquet").symlink_to(outside / "file")

        with pytest.raises(NotPlainError, match=r"part-1.parquet is a link"):
            opened.staged_files.written(planned(opened, "initial"))


def test_an_item_that_is_no_plain_folder_is_no_table_and_stops_no_other(
    root: Path, outside: Path
) -> None:
    """Nor do forty hostile tables that somebody has landed beside it."""
    storage = LocalStorage(root)
    publish(storage, "initial", [b"rows"])
    leave(storage, "changes", [b"rows"])
    for path in ("linked", "linked.schema", "sales.schema/linked", "_scratchPad/sales.linked"):
        (root / path).symlink_to(outside)
    (root / "_scratchPad" / "sales.piped").mkdir()
    os.mkfifo(root / "_scratchPad" / "sales.piped" / "manifest.json")

    assert table_folders(storage) == {TABLE, TableFolder("sales", "piped")}
    assert [manifest.table for manifest in pending_batches(storage)] == [TABLE]

    elsewhere = outside_of(outside / "elsewhere")
    hostile = [path.name for path, _ in land_forty(root / "sales.schema", elsewhere)]
    (root / "sales.schema" / "ours").mkdir()
    (root / "sales.schema" / "ours" / "_journal.json").symlink_to(elsewhere / "record.json")
    before = contents(outside)
    nodes = [node(name) for name in (TABLE.identifier, hostile[0], "ours")]
    tables = ProjectTables(storage, "shop", "sales", nodes)

    states = {status.table: status.state for status in tables.statuses()}

    blocked = {"sales.ours": "blocked", f"sales.{hostile[0]}": "blocked"}
    assert states == {"sales.orders": "unfinished", **blocked}
    assert [manifest.table for manifest in tables.unfinished()] == [TABLE]
    dropped = drop_orphans(tables, False, None, None, lambda _: True)
    assert dropped == Outcome(("There are no orphans.",))
    assert contents(outside) == before
