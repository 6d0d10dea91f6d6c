"""Texts that others have written, in messages, warnings and tables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.source import (
    PARTNER_EVENTS,
    declare_source,
    source_events,
)
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.node.decide import changes_between
from dbt.adapters.openmirroring.operations.orphans import drop_orphans
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables
from dbt.adapters.openmirroring.operations.status import status_lines
from dbt.adapters.openmirroring.service.fabric_api import FabricError
from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase
from dbt.adapters.openmirroring.service.monitoring_files import monitoring_report
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.table import text_table
from tests.fabric_server import Credential, Database, FabricServer, table

# clears the screen, and says something in the name of dbt
HOSTILE = "x\x1b[2J\r\n12:00:00  OK\u202e\x07"
HARMLESS = "x?[2J 12:00:00  OK??"

ORDERS = TableFolder("sales", "orders")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("model.shop.orders", "model.shop.orders"),
        ("a  b", "a  b"),
        ("Größe 価格 😀", "Größe 価格 😀"),
        ("one\n\n  two\t\tthree\n", "one two three"),
        (HOSTILE, HARMLESS),
        ("\x00\x7f\x9b31m\ud800", "???31m?"),
        (17, "17"),
        ("a" * 1000, "a" * 1000),
        ("a" * 10**7, "a" * 997 + "..."),
    ],
)
def test_a_text_is_shown_in_a_line_that_does_nothing(text: object, seen: str) -> None:
    assert shown(text) == seen


def definition(*columns: str) -> TableDefinition:
    return TableDefinition(tuple(MirroredColumn(c, "int", "int") for c in columns), (), "parquet")


def publish(storage: Storage, owner: Owner, reason: str = "") -> Journal:
    publication = Publication(storage, ORDERS, owner)
    storage.write(f"{ORDERS.staging(publication.batch_id)}/rows/0.parquet", b"rows")
    plan = Plan("initial", reason, definition("id"), RowCounts(1))
    manifest = publication.commit(plan, publication.staged_files.written(plan))
    publication.publish(manifest)
    publication.record(manifest)
    publication.complete(manifest)
    publication.close()
    journal = publication.journal()
    assert journal
    return journal


@pytest.mark.parametrize("project", ["shop", f"other {HOSTILE}"])
def test_the_owner_of_a_table_is_shown_in_the_status(storage: Storage, project: str) -> None:
    publish(storage, Owner(project, f"model.{HOSTILE}", "sales"), HOSTILE)
    orders = {
        "unique_id": "model.shop.orders",
        "name": "orders",
        "alias": "orders",
        "schema": "sales",
        "resource_type": "model",
        "config": {"materialized": "table"},
    }
    report = ServiceReport("Running", "", {str(ORDERS): TableReport(HOSTILE, HOSTILE)})

    for nodes in ([orders], []):
        tables = ProjectTables(storage, "shop", "sales", nodes)
        lines = [
            *status_lines(tables, report),
            *drop_orphans(tables, True, None, None, lambda _: True).lines,
        ]
        assert all(line.isprintable() for line in lines), lines


def test_the_owner_of_a_table_is_shown_in_errors(storage: Storage) -> None:
    publish(storage, Owner(f"other {HOSTILE}", f"model.{HOSTILE}", "sales"))
    publication = Publication(storage, ORDERS, Owner("shop", "model.shop.orders", "sales"))
    publication.pending()

    with pytest.raises(MirrorError) as refused:
        publication.verify(None, False)

    assert refused.value.msg.isprintable()
    assert HARMLESS in refused.value.msg


def test_a_reason_is_shown_in_the_line_of_the_node(storage: Storage) -> None:
    batch = publish(storage, Owner("shop", "model.shop.orders", "sales"), HOSTILE).batch

    assert batch.summary == f"initial +1 · #1 · {HARMLESS}"


def test_columns_that_were_published_are_shown_in_reasons() -> None:
    (dropped, added) = changes_between(definition(HOSTILE), definition("id"))

    assert dropped.detail == f"column dropped: {HARMLESS}"
    assert added.detail == "column added: id"


@pytest.mark.parametrize(
    "record",
    [
        {"version": HOSTILE},
        {"version": 1, "checksum": HOSTILE},
        {HOSTILE: 1},
    ],
)
def test_the_error_of_a_damaged_record_is_printable(record: dict[str, Any]) -> None:
    with pytest.raises(MirrorError) as refused:
        Journal.from_json(json.dumps(record).encode(), ORDERS.journal)

    assert refused.value.msg.isprintable()


def test_another_partner_is_shown(storage: Storage) -> None:
    storage.write(PARTNER_EVENTS, json.dumps({"partnerName": HOSTILE * 1000}).encode())

    with pytest.raises(MirrorError) as refused:
        declare_source(storage, source_events({"type": "SQL"}))

    assert refused.value.msg.isprintable()
    assert len(refused.value.msg) < 2000


def test_a_name_on_the_scratch_pad_is_shown(storage: Storage) -> None:
    with pytest.raises(MirrorError) as refused:
        storage.rename("nothing", f"nowhere {HOSTILE}/x")

    assert refused.value.msg.isprintable()


def test_texts_of_monitoring_files_are_printable() -> None:
    files = {
        "replicator.json": {"status": HOSTILE, "errorMessage": HOSTILE},
        "tables.json": {
            "tables": [
                {
                    "sourceSchemaName": "sales",
                    "sourceTableName": "orders",
                    "status": HOSTILE,
                    "errorMessage": HOSTILE,
                }
            ]
        },
    }

    assert monitoring_report(lambda name: json.dumps(files[name]).encode()) == ServiceReport(
        HARMLESS, HARMLESS, {"sales.orders": TableReport(HARMLESS, HARMLESS)}
    )


def test_texts_of_fabric_are_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FabricServer()
    server.connect(monkeypatch)
    error = {"errorCode": "Broken", "message": HOSTILE}
    orders = table("sales.orders", HOSTILE, error=HOSTILE)
    server.workspace("Sales", Database("shop", [HOSTILE], error, scan=lambda: [orders]))
    database = MirroredDatabase("Sales", "shop.MirroredDatabase", Credential(), server.clock)

    assert database.report() == ServiceReport(
        HARMLESS,
        f"Broken: {HARMLESS}",
        {"sales.orders": TableReport(HARMLESS, f"SchemaMergeFailure: {HARMLESS}")},
    )
    server.fail("getMirroringStatus", 400, HOSTILE)
    with pytest.raises(FabricError) as refused:
        database.report()
    assert refused.value.msg.isprintable()


@pytest.mark.skipif(os.name == "nt", reason="the replicator is not for Windows")
def test_folders_are_shown_by_the_replicator(tmp_path: Path) -> None:
    landing_zone = tmp_path / "Files" / "LandingZone"
    folder = landing_zone / f"a{HOSTILE}.schema" / f"b{HOSTILE}"
    folder.mkdir(parents=True)
    (folder / "_metadata.json").write_text("no JSON")

    lines, failed = replica.replicate(landing_zone)

    assert len(failed) == 1
    assert all(text.isprintable() for text in (*lines, *failed))


def test_tables_of_text_keep_their_columns() -> None:
    rows = [("name", "note"), ("a\x1b", "b\nc"), ("abc", "d")]

    assert list(text_table(rows, ())) == ["name  note", "a?    b?c", "abc   d"]
