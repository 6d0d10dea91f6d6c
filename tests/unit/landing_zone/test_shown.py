"""Texts that others have written, in messages, warnings and tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.landing_zone.batch import MirroredColumn, Owner
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import landed_table
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.source import (
    PARTNER_EVENTS,
    declare_source,
    source_events,
)
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.node.decide import changes_between
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables, drop_orphans
from dbt.adapters.openmirroring.operations.status import status_lines
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from dbt.adapters.openmirroring.text.shown import shown
from tests.unit.landing_zone.publishing import DEFINITION, TABLE, publication, publish
from tests.unit.operations.tables import node

# clears the screen, and says something in the name of dbt
HOSTILE = "x\x1b[2J\r\n12:00:00  OK\u202e\x07"
HARMLESS = "x?[2J 12:00:00  OK??"


def owner(project: str) -> Owner:
    return Owner(project, f"model.{HOSTILE}", "sales")


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


@pytest.mark.parametrize("project", ["shop", f"other {HOSTILE}"])
def test_the_owner_of_a_table_is_shown_in_the_status(storage: Storage, project: str) -> None:
    if sys.platform == "win32" and project != "shop" and isinstance(storage, LocalStorage):
        pytest.skip("Windows has no folder of such a name")
    publish(storage, "initial", [b"rows"], owner=owner(project), reason=HOSTILE)
    report = ServiceReport("Running", "", {str(TABLE): TableReport(HOSTILE, HOSTILE)})

    for nodes in ([node("orders")], []):
        tables = ProjectTables(storage, "shop", "sales", nodes)
        lines = [
            *status_lines(tables, report),
            *drop_orphans(tables, True, None, None, lambda _: True).lines,
        ]
        assert all(line.isprintable() for line in lines), lines


def verify_a_table_of_others(storage: Storage) -> None:
    publish(storage, "initial", [b"rows"], owner=owner(f"other {HOSTILE}"))
    with publication(storage) as opened:
        opened.pending()
        opened.verify(None, False)


def declare_another_partner(storage: Storage) -> None:
    storage.write(PARTNER_EVENTS, json.dumps({"partnerName": HOSTILE * 1000}).encode())
    declare_source(storage, source_events({"type": "SQL"}))


def read_record(**record: Any) -> Journal:
    return Journal.from_json(json.dumps(record).encode(), TABLE.journal)


@pytest.mark.parametrize(
    "refused",
    [
        verify_a_table_of_others,
        declare_another_partner,
        lambda storage: storage.rename("nothing", f"nowhere {HOSTILE}/x"),
        lambda _: read_record(version=HOSTILE),
        lambda _: read_record(version=1, checksum=HOSTILE),
        lambda _: read_record(**{HOSTILE: 1}),
    ],
    ids=["owner", "partner", "path", "version", "checksum", "property"],
)
def test_an_error_is_printable_whatever_others_have_written(
    storage: Storage, refused: Callable[[Storage], object]
) -> None:
    with pytest.raises(MirrorError) as error:
        refused(storage)

    assert error.value.msg.isprintable()
    assert len(error.value.msg) < 2000


def test_a_reason_is_shown_in_the_line_of_the_node(storage: Storage) -> None:
    publish(storage, "initial", [b"rows"], reason=HOSTILE)

    journal = landed_table(storage, TABLE).journal
    assert journal
    assert journal.batch.summary == f"initial +1 · #1 · {HARMLESS}"


def test_columns_that_were_published_are_shown_in_reasons() -> None:
    keyless = replace(DEFINITION, key_columns=())
    before = replace(keyless, columns=(MirroredColumn(HOSTILE, "int", "int"),))

    (dropped, added) = changes_between(before, keyless)

    assert dropped.detail == f"column dropped: {HARMLESS}"
    assert added.detail == "column added: id"


@pytest.mark.skipif(sys.platform == "win32", reason="it has no folder of such a name")
def test_folders_are_shown_by_the_replicator(tmp_path: Path) -> None:
    landing_zone = tmp_path / "Files" / "LandingZone"
    folder = landing_zone / f"a{HOSTILE}.schema" / f"b{HOSTILE}"
    folder.mkdir(parents=True)
    (folder / "_metadata.json").write_text("no JSON")

    lines, failed = replica.replicate(landing_zone)

    assert len(failed) == 1
    assert all(text.isprintable() for text in (*lines, *failed))
