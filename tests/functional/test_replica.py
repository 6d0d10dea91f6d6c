"""The mirrored tables on this machine: how dbt's users get and test them."""

from __future__ import annotations

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests.delta_tables import content
from tests.functional.project import Project

pytestmark = pytest.mark.needs(local="the replicator applies landing zones on this machine")

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"


def declare_test(project: Project, **arguments: Any) -> None:
    test = (
        {"mirror_equals_model": {"arguments": arguments}} if arguments else "mirror_equals_model"
    )
    content = {"models": [{"name": "orders", "data_tests": [test]}]}
    project.write("models/orders.yml", json.dumps(content))


def delta(project: Project) -> DeltaTable:
    return DeltaTable(project.landing_zone.parents[1] / "Tables" / project.schema / "orders")


def forget(project: Project) -> None:
    """Have the mirrored tables made anew."""
    shutil.rmtree(project.landing_zone.parents[1] / "Tables")


def outcome(project: Project) -> tuple[str, str, int | None]:
    """Status, message and failures of the only test."""
    (result,) = [r for r in project.results().values() if r["unique_id"].startswith("test.")]
    return result["status"], result["message"] or "", result["failures"]


@pytest.mark.core
def test_an_operation_replicates_and_tells_what_it_did(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()

    assert project.dbt("run-operation", "mirror_replicate")

    lines = capsys.readouterr().out.splitlines()
    headline = ["mirrored table", "status", "rows", "files applied", "rows applied"]
    assert re.split(r"\s{2,}", lines[0]) == headline
    assert lines[1].split() == [f"{project.schema}.orders", "Replicating", "2", "1", "2"]
    assert delta(project).count() == 2


@pytest.mark.core
def test_the_profile_can_ask_for_replication_at_the_end_of_each_run(project: Project) -> None:
    project.target["replicate"] = True
    project.write_project()
    project.model(ORDERS, unique_key="id")

    project.run()

    assert delta(project).count() == 2
    project.model(f"{ORDERS} where id = 1", unique_key="id")
    project.run()
    assert delta(project).count() == 1


def put_back_an_older_landing_zone(project: Project, newer: Path) -> None:
    """Let the mirrored tables go on elsewhere, and have only these of a newer backup."""
    item = project.landing_zone.parents[1]
    shutil.copytree(item, newer)
    folder = newer / project.folder().relative_to(item)
    schema = pa.schema({"id": pa.int32(), "name": pa.string(), "__rowMarker__": pa.int32()})
    for number, row in ((2, (3, "c", 4)), (3, (1, "z", 4))):
        rows = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True))], schema)
        pq.write_table(rows, folder / f"{number:020d}.parquet")
    (report,) = Replicator(newer / "Files" / "LandingZone").scan()
    assert report.files == 2
    shutil.rmtree(item / "Tables")
    shutil.copytree(newer / "Tables", item / "Tables")


def test_records_beside_a_newer_mirror_are_noticed(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.target["replicate"] = True
    project.write_project()
    project.model(ORDERS, unique_key="id")
    project.run()
    put_back_an_older_landing_zone(project, tmp_path / "newer.MirroredDatabase")
    project.model(ORDERS.replace("'b'", "'d'"), unique_key="id")
    project.run()

    assert not project.dbt("run-operation", "mirror_replicate")

    printed = " ".join(capsys.readouterr().out.split())
    refused = project.fail()
    for text in (printed, refused):
        assert "the table folder is older than the mirrored table" in text.lower()
        assert "replaces the 3 rows of the mirrored table" in text
        assert "`dbt run-operation mirror_rebuild`" in text
    named = "{table: orders}"
    assert project.dbt("run-operation", "mirror_rebuild", "--args", named)
    assert len(project.mirror()) == 2
    project.assert_mirrored()


@pytest.mark.core
def test_a_test_finds_the_mirrored_table_equal_while_the_build_still_runs(
    project: Project,
) -> None:
    project.target["replicate"] = True
    project.write_project()
    project.model(ORDERS, unique_key="id")
    declare_test(project)

    project.run(command="build")
    (project.folder() / "notes.txt").write_text("no data")
    project.model(ORDERS.replace("'b'", "'c'"), unique_key="id")
    project.run(command="build")

    assert outcome(project) == ("pass", "", 0)
    (project.folder() / "notes.txt").unlink()


def test_a_test_waits_for_a_replicator_that_runs_beside_but_not_for_ever(
    project: Project,
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    declare_test(project, timeout=1)
    assert project.dbt("compile")
    assert not (project.landing_zone.parents[1] / "Tables").exists()

    assert not project.dbt("test")

    status, message, _ = outcome(project)
    assert status == "error"
    assert "was not applied within 1 seconds" in message
    assert "mirror_replicate" in message

    declare_test(project)
    replicator = threading.Timer(1.5, Replicator(project.landing_zone).scan)
    replicator.start()
    try:
        project.run(command="test")
    finally:
        replicator.join()

    assert outcome(project) == ("pass", "", 0)


def test_a_test_and_the_status_tell_at_once_why_a_table_is_stuck(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.target["replicate"] = True
    project.write_project()
    project.model(ORDERS, unique_key="id")
    project.run()
    bad = project.folder() / f"{2:020d}.parquet"
    bad.write_bytes(b"")
    declare_test(project)

    assert not project.dbt("test")

    status, message, _ = outcome(project)
    assert status == "error"
    assert "InputValidationError" in message
    assert project.dbt("run-operation", "mirror_status")
    told = capsys.readouterr().out
    assert "Failed" in told
    assert "zero bytes" in told
    bad.unlink()


@pytest.mark.core
def test_a_test_fails_with_the_keys_that_differ(project: Project) -> None:
    project.model(
        "select * from values (1, 'a'), (2, 'b'), (3, null) as t(id, `the name`)", unique_key="id"
    )
    project.run()
    Replicator(project.landing_zone).scan()
    delta(project).delete("id = 1")
    delta(project).update({'"the name"': "'B'"}, predicate="id = 2")
    rows = content(delta(project))
    extra = rows.slice(0, 1).set_column(0, "id", [[4]]).cast(rows.schema)
    write_deltalake(delta(project), extra, mode="append")
    declare_test(project)

    assert not project.dbt("test", "--store-failures")

    assert outcome(project)[::2] == ("fail", 3)
    (failures,) = [
        row["tableName"] for row in project.sql(f"show tables in {project.schema}_dbt_test__audit")
    ]
    found = project.sql(f"select * from {project.schema}_dbt_test__audit.{failures} order by id")
    assert [tuple(row) for row in found] == [
        (1, "missing in the mirrored table"),
        (2, "different"),
        (4, "only in the mirrored table"),
    ]
    forget(project)


def test_a_test_counts_rows_that_have_no_key(project: Project) -> None:
    project.model("select * from values (1), (1), (2) as t(id)")
    project.run()
    Replicator(project.landing_zone).scan()
    declare_test(project)
    project.run(command="test")
    table = delta(project)
    write_deltalake(table, content(table).slice(0, 1), mode="append")

    assert not project.dbt("test")

    assert outcome(project)[::2] == ("fail", 1)
    forget(project)


def test_a_test_reads_every_type_and_an_empty_table(project: Project) -> None:
    sql = (
        "select * from values (1, true, 0.1d, cast('nan' as double), 1.10, date'2024-02-29', "
        "timestamp'2024-02-29 23:59:59.999999', timestamp_ntz'2024-01-01 00:00:00', X'00ff', "
        "array(1, null), map('a', 1), named_struct('b', cast(null as int)), 'ä''\"`', "
        "cast(null as smallint)) as t(id, b, d, n, c, dt, ts, ntz, bin, arr, m, s, "
        "`a str,ange {name}`, v)"
    )
    declare_test(project)
    for where in ("", " where id = 2"):
        project.model(sql + where, unique_key="id")
        project.run()
        Replicator(project.landing_zone).scan()
        project.run(command="test")
        assert outcome(project) == ("pass", "", 0)


@pytest.mark.parametrize(
    ("config", "test", "told"),
    [
        ({"mirror": False}, "mirror_equals_model", "is not mirrored"),
        ({}, {"mirror_equals_model": {"config": {"where": "id = 1"}}}, "remove `where`"),
    ],
    ids=["not mirrored", "a part"],
)
def test_what_cannot_be_compared_is_refused(
    project: Project, config: dict[str, Any], test: Any, told: str
) -> None:
    project.target["replicate"] = True
    project.write_project()
    project.model(ORDERS, **config)
    project.run()
    declared = {"models": [{"name": "orders", "data_tests": [test]}]}
    project.write("models/orders.yml", json.dumps(declared))

    assert not project.dbt("test")

    assert told in outcome(project)[1]
