"""Records are input: what somebody has written in their place changes nothing, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.openmirroring.landing_zone.batch import (
    DelimitedText,
    MirroredColumn,
    RowCounts,
    StagedFile,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest, _checksum
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables
from tests.unit.landing_zone.publishing import (
    DEFINITION,
    OWNER,
    TABLE,
    finish,
    leave,
    publication,
    publish,
    recover,
)
from tests.unit.operations.tables import node

OTHER = TableFolder("sales", "others")
TEXT = replace(DEFINITION, landing_format="csv", delimited=DelimitedText())
ID, PREVIOUS = new_batch_id(), new_batch_id()
NODES = [node("orders"), node("others")]


def manifest() -> Manifest:
    columns = (MirroredColumn("ünï `x`", "int", "int"),)
    definition = replace(DEFINITION, columns=columns, key_columns=("ünï `x`",))
    files = (StagedFile("part-0.parquet", 10), StagedFile("part-1.parquet", 10))
    batch = Plan("changes", "", definition, RowCounts(120, 30, 4)).batch(ID, ID, OWNER, files, 17)
    return Manifest(batch, TABLE, PREVIOUS, files)


def test_records_are_read_as_they_were_written() -> None:
    written = manifest()
    at = datetime(2026, 11, 21, 17, 39, 12, 345678, timezone.utc)
    journal = Journal.of(written.batch, at)

    assert Manifest.from_json(written.to_json(), TABLE.manifest) == written
    assert Journal.from_json(journal.to_json(), "here") == journal
    assert journal.published_at == "2026-11-21T17:39:12.345+00:00"


# The history of a journal


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def history(storage: LocalStorage) -> list[str]:
    """The ids of the batches that the journal knows, the last one first."""
    journal = Journal.read(storage, TABLE.journal)
    assert journal
    return [batch.id for batch in journal.batches]


def test_a_hundred_batches_are_remembered_the_last_first(storage: LocalStorage) -> None:
    publish(storage, "initial", [b"x"])
    ids = [publish(storage, "changes", [b"x"]) for _ in range(105)]

    assert history(storage) == ids[:-101:-1]


def test_a_rebuild_keeps_the_history_of_the_folder_that_it_drops(storage: LocalStorage) -> None:
    ids = [publish(storage, kind, [b"x"]) for kind in ("initial", "changes", "rebuild", "changes")]

    assert history(storage) == ids[::-1]


@pytest.mark.parametrize("dropped", [False, True])
def test_a_rebuild_that_another_run_finishes_keeps_it_too(
    storage: LocalStorage, dropped: bool
) -> None:
    first = publish(storage, "initial", [b"x"])
    rebuild = leave(storage, "rebuild", [b"y"])
    if dropped:
        storage.delete(TABLE.path)

    assert recover(storage)

    assert history(storage) == [rebuild.batch.id, first]


def test_a_journal_without_a_history_has_its_last_batch(storage: LocalStorage) -> None:
    id_ = publish(storage, "initial", [b"x"])
    data = json.loads(storage.read(TABLE.journal) or b"")
    del data["checksum"], data["history"], data["batch"]["owner"]["invocation_id"]
    storage.write(TABLE.journal, json.dumps({**data, "checksum": _checksum(data)}).encode())

    assert history(storage) == [id_]


# What others have written


@pytest.fixture(scope="module")
def zone(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    """Two tables, a batch of one of which is committed; beside them a file of somebody else."""
    root = tmp_path_factory.mktemp("item")
    (root / "macros").mkdir()
    storage = LocalStorage(root / "Files" / "LandingZone")
    for table in (TABLE, OTHER):
        publish(storage, "initial", [b"rows"], TEXT, table=table)
    leave(storage, "changes", [b"rows"], TEXT)
    return storage


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something is in a record."""
    items: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data))
    return [path, *(place for key, value in items for place in places(value, (*path, key)))]


def replaced(data: dict[str, Any], place: tuple[Any, ...], value: Any) -> Any:
    """A record with something else in one place, and with the checksum of that."""
    if not place:
        return value
    result: Any = deepcopy(data)
    within = result
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = value
    if place != ("checksum",):
        result["checksum"] = _checksum({k: v for k, v in result.items() if k != "checksum"})
    return result


# values that would leave the folder, or are no value of any field
HOSTILE: list[Any] = [
    *("../../../../macros/evil.sql", "csv/../../../../../macros/evil.sql", "/etc/passwd", ".."),
    *("", ".", "a/b", "a\\b", "\x00", "\n", "é" * 300, "x" * 100_000, "\ud800", "'; drop table x"),
    *(-1, 0, 2**31, 2**63, 2**64, 10**30, 1.5, 1.0, float("nan"), float("inf"), True, False, None),
    *([], {}, [[]], [None], {"": None}, [1] * 1000),
]
values = st.one_of(
    st.sampled_from(HOSTILE),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
)


@pytest.mark.parametrize("record", ["journal", "manifest"])
def test_a_record_with_another_value_is_refused_or_does_nothing_elsewhere(
    zone: LocalStorage, record: str, many: bool
) -> None:
    """A field is replaced, with a checksum that is right."""

    @settings(max_examples=1000 if many else 80, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        forge(zone, record, data)

    check()


def forge(zone: LocalStorage, record: str, data: st.DataObject) -> None:
    path = TABLE.manifest if record == "manifest" else TABLE.journal
    before = files(zone._root.parents[1])
    written = zone.read(path)
    assert written
    good = json.loads(written)
    place = data.draw(st.sampled_from(places(good)), label="place")
    forged = replaced(good, place, data.draw(values, label="value"))
    zone.write(path, json.dumps(forged).encode())
    try:
        outcome = recovered(zone)

        after = files(zone._root.parents[1])
        changed = {file for file in {*before, *after} if before.get(file) != after.get(file)}
        inside = {zone._root / TABLE.path, zone._root / TABLE.scratch}
        assert all(inside & set(file.parents) for file in changed), (outcome, changed)
        lines = ProjectTables(zone, "shop", "sales", NODES).statuses()
        assert {s.table: s.state for s in lines}["sales.others"] == "published"
    finally:
        restored(zone, before)


def recovered(zone: LocalStorage) -> str:
    """Finish a pending batch, and return what happened."""
    try:
        with publication(zone) as opened:
            pending = opened.pending()
            if pending:
                finish(opened, pending)
            opened.verify(None, rebuilds=True)
    except MirrorError as error:
        return str(error.msg)
    return ""


def restored(zone: LocalStorage, content: dict[Path, bytes]) -> None:
    root = zone._root.parents[1]
    for file in files(root).keys() - content.keys():
        file.unlink()
    for file, found in content.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(found)


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"", "damaged or was edited"),
        (b"{", "damaged or was edited"),
        (b"null", "damaged or was edited"),
        (b"[]", "damaged or was edited"),
        (b"\xff\xfe", "damaged or was edited"),
        (b"[" * 1_000_000, "damaged or was edited"),
        (b'{"version":1,"checksum":' + b"[" * 1_000_000, "damaged or was edited"),
        (b"9" * 100_000, "damaged or was edited"),
        (b'{"version": 99}', "version 99"),
    ],
    ids=["empty", "begun", "null", "list", "no text", "deep", "deep within", "number", "later"],
)
@pytest.mark.parametrize("read", [Manifest.from_json, Journal.from_json])
def test_a_file_that_is_no_record_is_refused(
    read: Callable[[bytes, str], object], content: bytes, finding: str
) -> None:
    with pytest.raises(MirrorError, match=finding):
        read(content, TABLE.manifest)


def test_a_manifest_is_of_the_table_that_it_lies_with(zone: LocalStorage) -> None:
    content = zone.read(TABLE.manifest)
    assert content

    with pytest.raises(MirrorError, match=r"it is of the table sales\.orders"):
        Manifest.from_json(content, OTHER.manifest)


def test_the_batch_of_another_project_is_left_to_it(zone: LocalStorage) -> None:
    before = files(zone._root)

    with (
        publication(zone, replace(OWNER, project="other shop")) as other,
        pytest.raises(MirrorError, match="belongs to the dbt project 'shop'"),
    ):
        other.pending()

    assert files(zone._root) == before
