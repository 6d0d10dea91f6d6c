"""Records are input: what somebody has written in their place changes nothing, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest, _checksum
from dbt.adapters.openmirroring.operations.project_tables import BLOCKED, PUBLISHED, ProjectTables
from tests.variants import some

TABLE, OTHER = TableFolder("sales", "orders"), TableFolder("sales", "others")
OWNER = Owner("shop", "model.shop.orders", "sales")
DEFINITION = TableDefinition(
    (MirroredColumn("id", "int", "int"),), ("id",), "csv", DelimitedText()
)
NODES = [
    {
        "unique_id": f"model.shop.{table.identifier}",
        "resource_type": "model",
        "name": table.identifier,
        "alias": table.identifier,
        "schema": table.schema,
        "config": {"materialized": "table"},
    }
    for table in (TABLE, OTHER)
]


def committed(storage: LocalStorage, table: TableFolder = TABLE) -> tuple[Publication, Manifest]:
    """A batch with one file, up to its commit."""
    opened = Publication(storage, table, OWNER)
    opened.pending()
    plan = Plan("changes", "", DEFINITION, RowCounts(1), journal=opened.journal())
    if not plan.journal:
        plan = Plan("initial", "", DEFINITION, RowCounts(1))
    storage.write(f"{table.staging(opened.batch_id)}/rows/part-0.csv", b"rows")
    return opened, opened.commit(plan, opened.staged_files.written(plan))


def published(storage: LocalStorage, table: TableFolder) -> None:
    opened, manifest = committed(storage, table)
    with closing(opened):
        opened.publish(manifest)
        opened.record(manifest)
        opened.complete(manifest)


@pytest.fixture(scope="module")
def zone(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    """Two tables, a batch of one of which is committed; beside them a file of somebody else."""
    root = tmp_path_factory.mktemp("item")
    (root / "macros").mkdir()
    storage = LocalStorage(root / "Files" / "LandingZone")
    for table in (TABLE, OTHER):
        published(storage, table)
    opened, _ = committed(storage)
    opened.close()
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


@pytest.mark.parametrize("record", some(["journal", "manifest"]))
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_record_with_another_value_is_refused_or_does_nothing_elsewhere(
    zone: LocalStorage, record: str, data: st.DataObject
) -> None:
    """Every field is replaced in turn, with a checksum that is right."""
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
        assert {s.table: s.state for s in lines}["sales.others"] == PUBLISHED
    finally:
        restored(zone, before)


def recovered(zone: LocalStorage) -> str:
    """Finish a pending batch, and return what happened."""
    opened = Publication(zone, TABLE, OWNER)
    try:
        manifest = opened.pending()
        if manifest:
            opened.publish(manifest)
            opened.record(manifest)
            opened.complete(manifest)
        opened.verify(None, rebuilds=True)
    except MirrorError as error:
        return str(error.msg)
    finally:
        opened.close()
    return ""


def restored(zone: LocalStorage, content: dict[Path, bytes]) -> None:
    root = zone._root.parents[1]
    for file in files(root).keys() - content.keys():
        file.unlink()
    for file, found in content.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(found)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"[" * 1_000_000,
        b'{"version":1,"checksum":' + b"[" * 1_000_000,
        b"9" * 100_000,
    ],
    ids=["empty", "begun", "null", "list", "no text", "deep", "deep within", "number"],
)
@pytest.mark.parametrize("read", [Manifest.from_json, Journal.from_json])
def test_a_file_that_is_no_record_is_refused(
    read: Callable[[bytes, str], object], content: bytes
) -> None:
    with pytest.raises(MirrorError, match="damaged or was edited"):
        read(content, TABLE.manifest)


def test_a_manifest_is_of_the_table_that_it_lies_with(zone: LocalStorage) -> None:
    content = zone.read(TABLE.manifest)
    assert content

    with pytest.raises(MirrorError, match=r"it is of the table sales\.orders"):
        Manifest.from_json(content, OTHER.manifest)


def test_the_batch_of_another_project_is_left_to_it(zone: LocalStorage) -> None:
    before = files(zone._root)
    other = Publication(zone, TABLE, Owner("other shop", "model.other.orders", "sales"))

    with closing(other), pytest.raises(MirrorError, match="belongs to the dbt project 'shop'"):
        other.pending()

    assert files(zone._root) == before


def test_a_table_with_a_damaged_record_is_blocked_and_the_others_are_reported(
    zone: LocalStorage,
) -> None:
    before = files(zone._root.parents[1])
    zone.write(TABLE.journal, b"[" * 1_000_000)
    try:
        statuses = ProjectTables(zone, "shop", "sales", NODES).statuses()
    finally:
        restored(zone, before)

    assert [(status.table, status.state) for status in statuses] == [
        ("sales.orders", BLOCKED),
        ("sales.others", PUBLISHED),
    ]
