"""The page with the state and the history of each mirrored table."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables
from dbt.adapters.openmirroring.operations.report import (
    HEIGHT,
    WIDTH,
    Chart,
    Heading,
    html,
    report,
    report_page,
)
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from tests.report_parser import Parsed
from tests.unit.operations.tables import node, publish

HEADING = Heading("shop", "local", "mirror.MirroredDatabase/Files/LandingZone")
SILENT = ServiceReport()
HOSTILE = '<script>alert("1")</script>\'&amp;\x1b[31m\u202e\nlast'


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "LandingZone")


def tables_of(storage: LocalStorage, names: Sequence[str]) -> ProjectTables:
    return ProjectTables(storage, "shop", "sales", [node(name) for name in names])


def page(
    storage: LocalStorage,
    *names: str,
    found: ServiceReport = SILENT,
    problem: str = "",
    heading: Heading = HEADING,
) -> str:
    return html(report_page(tables_of(storage, names), heading, found, problem))


def test_every_batch_of_a_table_is_listed_and_in_the_chart(storage: LocalStorage) -> None:
    """The last is the first in the list, and at the end of the chart."""
    run: dict[str, Any] = {"invocation_id": "an-invocation"}
    publish(storage, rows=RowCounts(1200), **run)
    publish(storage, rows=RowCounts(3, 2, 1), **run)
    publish(storage, kind="unchanged", rows=RowCounts(), **run)
    publish(storage, kind="rebuild", rows=RowCounts(1202), reason="--full-refresh", **run)

    (table,) = Parsed(page(storage, "orders")).tables

    assert (table.name, table.state) == ("sales.orders", "published")
    assert [cells[1:] for cells in table.batches] == [
        ["rebuild", "+1,202", "0", "0", "1,202", "1", "1.2 kB", "--full-refresh", "an-invocation"],
        ["unchanged", "0", "0", "0", "1,202", "0", "0 B", "", "an-invocation"],
        ["changes", "+3", "~2", "-1", "1,202", "1", "1.2 kB", "", "an-invocation"],
        ["initial", "+1,200", "0", "0", "1,200", "1", "1.2 kB", "", "an-invocation"],
    ]
    assert "rebuild +1,202\n" in table.text
    time = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
    assert all(time.fullmatch(cells[0]) for cells in table.batches)
    assert [bar.split(" · ")[1:] for bar in table.bars] == [
        ["initial", "+1,200 ~0 -0"],
        ["changes", "+3 ~2 -1"],
        ["unchanged", "+0 ~0 -0"],
        ["rebuild", "+1,202 ~0 -0"],
    ]


def test_tables_with_trouble_come_first(storage: LocalStorage) -> None:
    names = ["a_new", "b_good", "c_behind", "e_unfinished", "f_blocked", "g_failing"]
    for name in (*names[1:], "d_orphan"):
        publish(storage, name)
    publish(storage, "e_unfinished", completes=False)
    storage.write(TableFolder("sales", "f_blocked").journal, b"{}")
    later = datetime.now(timezone.utc) + timedelta(minutes=1)
    applied = {f"sales.{name}": TableReport("Replicating", "", later) for name in names[1:]}
    applied["sales.c_behind"] = TableReport("Replicating", "", later - timedelta(hours=1))
    applied["sales.g_failing"] = TableReport("Failed", "a file has zero bytes", later)

    found = Parsed(page(storage, *names, found=ServiceReport("Running", "", applied)))

    assert [(table.name.partition(".")[2], table.state) for table in found.tables] == [
        ("g_failing", "failing"),
        ("f_blocked", "blocked"),
        ("e_unfinished", "unfinished"),
        ("c_behind", "behind"),
        ("d_orphan", "elsewhere"),
        ("a_new", "not published"),
        ("b_good", "published"),
    ]
    notes = [table.text for table in found.tables]
    assert "a file has zero bytes" in notes[0]
    assert "_journal.json is damaged or was edited" in notes[1]
    assert "pending: +1 ~0 -0 · #2" in notes[2]
    assert "model.shop.d_orphan is gone" in notes[4]
    assert found.tables[1].batches == []
    assert found.tables[5].bars == []


def test_the_page_loads_and_runs_nothing(storage: LocalStorage) -> None:
    publish(storage)

    text = page(storage, "orders")

    found = Parsed(text)
    names = {name for name, _ in found.attributes}
    assert not names & {"src", "href", "srcset", "action", "data", "style", "xlink:href"}
    assert not [name for name in names if name.startswith("on")]
    assert not found.elements & {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert not re.search(r"url\(|@import|https?:", text)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert ("content", policy) in found.attributes


@pytest.mark.skipif(sys.platform == "win32", reason="it has no folder of such a name")
def test_names_and_texts_of_others_are_only_text(storage: LocalStorage) -> None:
    ours: dict[str, Any] = {"node": f"model.shop.{HOSTILE}", "invocation_id": HOSTILE}
    publish(storage, reason=HOSTILE, **ours)
    publish(storage, "theirs", project=HOSTILE, node=HOSTILE)
    publish(storage, "gone", **ours)
    service = ServiceReport(HOSTILE, HOSTILE, {"sales.orders": TableReport(HOSTILE, HOSTILE)})
    plain = Parsed(page(storage, "orders", "theirs"))

    heading = Heading(HOSTILE, HOSTILE, HOSTILE)
    text = page(storage, "orders", "theirs", HOSTILE, found=service, heading=heading)

    found = Parsed(text)
    assert found.elements == plain.elements
    assert {name for name, _ in found.attributes} == {name for name, _ in plain.attributes}
    assert not [each for each in text if not each.isprintable() and each != "\n"]
    fit = '<script>alert("1")</script>\'&amp;?[31m? last'
    assert found.text.count(fit) > 10
    orders = next(table for table in found.tables if table.name == "sales.orders")
    assert orders.batches[0][-2:] == [fit, fit]
    assert [table.name for table in found.tables if table.state == "blocked"] == [
        f"sales.{fit}",
        "sales.theirs",
    ]


def test_a_page_without_tables_and_what_is_known_of_the_service(storage: LocalStorage) -> None:
    problem = "Fabric does not answer"
    paused = ServiceReport("Paused", "no capacity")

    assert Parsed(page(storage)).tables == []
    assert "no mirrored tables" in Parsed(page(storage)).text
    assert problem in Parsed(page(storage, "orders", problem=problem)).text
    assert "Paused (no capacity)" in Parsed(page(storage, "orders", found=paused)).text


def test_each_state_can_be_shown_alone(storage: LocalStorage) -> None:
    publish(storage)

    text = page(storage, "orders", "later", "never")

    ids = [value for name, value in Parsed(text).attributes if name == "id"]
    assert ids == ["show-1", "show-2"]
    assert all(f"body:has(#{each}:checked)" in text for each in ids)
    assert (text.count('<li class="of-1">'), text.count('<li class="of-2">')) == (2, 1)


def test_a_page_of_many_tables_with_full_histories_stays_small(storage: LocalStorage) -> None:
    publish(storage)
    publish(storage, rows=RowCounts(30, 20, 10), reason="x" * 40)
    small = report_page(tables_of(storage, ["orders"]), HEADING, SILENT)
    (table,) = small.tables
    landed, journal = table.status.landed, table.status.journal
    assert landed
    assert journal
    full = replace(journal, history=tuple(journal.batches[:1]) * 98 + journal.batches[1:])
    assert len(full.batches) == 100
    status = replace(table.status, landed=replace(landed, journal=full))

    text = html(replace(small, tables=(replace(table, status=status),) * 300))

    assert len(text.encode()) < 2_000_000
    found = Parsed(text)
    assert {len(each.batches) for each in found.tables} == {5}
    lines = [path for name, path in found.attributes if name == "d" and "h" not in path]
    assert sum(path.count("M") for path in lines) == 300 * (99 * 3 + 1), "each batch is drawn"
    assert "mirror_history --args '{limit: 100}'" in found.text


def test_the_report_is_written_to_the_target_path(storage: LocalStorage, tmp_path: Path) -> None:
    publish(storage)
    destination = Destination(
        Target(landing_zone="LandingZone"), project=lambda: tmp_path, warehouse=lambda: None
    )
    tables = tables_of(storage, ["orders"])

    outcome = report(tables, destination, HEADING, tmp_path / "new" / "target")

    path = tmp_path / "new" / "target" / "mirror_report.html"
    assert outcome.lines == (f"Report on 1 table: {path}",)
    assert len(Parsed(path.read_text(encoding="utf-8")).tables) == 1
    with pytest.raises(DbtRuntimeError, match="could not be written"):
        report(tables, destination, HEADING, path)


counts = st.integers(0, 2**63 - 1) | st.integers(0, 20)
batches = st.builds(
    PastBatch,
    id=st.just("2026112306000000000000"),
    published_at=st.just("2026-11-23T06:00:00.000+00:00"),
    publication=st.sampled_from(["initial", "changes", "rebuild", "unchanged"]),
    reason=st.just(""),
    rows=st.builds(RowCounts, counts, counts, counts),
    files_written=counts,
    bytes_written=counts,
    table_rows=counts,
    invocation_id=st.just(""),
)


@given(st.lists(batches, max_size=120))
def test_every_batch_is_seen_and_within_the_chart(drawn: list[PastBatch]) -> None:
    chart = Chart.of(drawn)

    piece = re.compile(r"M(\d+) ([\d.]+)v([\d.]+)")
    pieces = [found for path in chart.paths.values() for found in piece.findall(path)]
    for _, y, height in pieces:
        assert float(height) >= 1
        assert float(y) >= 0
        assert float(y) + float(height) <= HEIGHT + 0.1
    places = [x for x, _ in chart.titles]
    assert len(places) == min(len(drawn), 100)
    assert places == sorted(set(places))
    assert {int(x) for x, _, _ in pieces} == set(places)
    assert all(0 < x < WIDTH for x in places)
