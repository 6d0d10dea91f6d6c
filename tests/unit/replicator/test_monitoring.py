"""The reports of the replicator: its status files, and the output of its command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.replicator.__main__ import main
from tests.unit.replicator.item import Item, rows


def tables(item: Item) -> list[dict[str, Any]]:
    content = json.loads((item.path / "Files" / "Monitoring" / "tables.json").read_text())
    return list(content["tables"])


def test_the_status_files_have_the_names_that_microsofts_sdk_reads(item: Item) -> None:
    item.keyed()
    path = item.land(1, rows((1, "a"), (2, "b")))

    item.scan()

    (table,) = tables(item)
    assert table["id"] == item.delta().metadata().id
    assert table["sourceSchemaName"] == "shop"
    assert table["sourceTableName"] == table["normalizedTableName"] == "orders"
    assert (table["status"], table["errorCode"], table["errorMessage"]) == ("Replicating", "", "")
    assert table["metrics"]["processedRowCount"] == 2
    assert table["metrics"]["processedByte"] == path.stat().st_size
    assert table["metrics"]["lastSyncTimeUtc"]
    monitoring = item.path / "Files" / "Monitoring"
    assert json.loads((monitoring / "replicator.json").read_text())["status"] == "Running"


def test_a_file_is_applied_and_counted_once_however_often_it_is_scanned(item: Item) -> None:
    """Processed rows are operations and add up, until the table is recreated."""
    item.keyed()
    item.land(1, rows((1, "a"), (2, "b")))
    item.scan()
    synced = tables(item)[0]["metrics"]["lastSyncTimeUtc"]
    assert item.scan().files == 0
    assert tables(item)[0]["metrics"]["lastSyncTimeUtc"] == synced
    item.land(2, rows((1, None, 2), (2, "c", 1), (2, "d", 1)))

    report = item.scan()

    assert (report.files, report.operations, report.rows) == (1, 3, 1)
    assert tables(item)[0]["metrics"]["processedRowCount"] == 5
    item.drop()
    item.keyed()
    item.land(1, rows((1, "a")))
    item.scan()
    assert tables(item)[0]["metrics"]["processedRowCount"] == 1


def test_the_states_of_tables_that_are_gone_are_forgotten(item: Item) -> None:
    """Also of one that was never mirrored."""
    item.keyed()
    item.land(1, rows((1, "a")))
    item.metadata("parts", FileFormat="json")
    item.replicator.scan()
    assert [each["status"] for each in tables(item)] == ["Failed", "Replicating"]
    item.drop()
    item.drop("parts")

    item.replicator.scan()

    assert tables(item) == []


@pytest.fixture
def command(item: Item, monkeypatch: pytest.MonkeyPatch) -> Item:
    """An item with a table; its landing zone is the argument of the command."""
    item.keyed()
    monkeypatch.setattr(sys, "argv", ["replicator", str(item.landing_zone)])
    return item


def test_the_command_prints_its_changes(command: Item, capsys: pytest.CaptureFixture[str]) -> None:
    command.land(1, rows((1, "a"), (2, "b")))
    command.metadata("parts")
    command.land(2, rows((1, "a")), "parts")

    assert main() == 0

    assert capsys.readouterr().out == (
        "mirrored table  status        rows  files applied  rows applied\n"
        "dbo.parts       Snapshotting                                     "
        "waits for 00000000000000000001.parquet\n"
        "shop.orders     Replicating      2              1             2\n"
    )


def test_an_error_of_a_table_is_reported_and_is_the_commands_exit_status(
    command: Item, capsys: pytest.CaptureFixture[str]
) -> None:
    command.land_bytes("00000000000000000001.parquet", b"")

    assert main() == 1

    assert "InputValidationError" in capsys.readouterr().out
    (table,) = tables(command)
    assert (table["status"], table["errorCode"]) == ("Failed", "InputValidationError")
    assert "zero bytes" in table["errorMessage"]


@pytest.mark.parametrize("place", ["nowhere", "nowhere/Files/LandingZone"])
def test_the_command_refuses_a_folder_that_is_no_landing_zone(
    tmp_path: Path,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["replicator", str(tmp_path / place)])

    assert main() == 1
    assert "landing zone" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="the signal of a user who interrupts it")
def test_watching_applies_new_files_until_it_is_interrupted(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    module = "dbt.adapters.openmirroring.replicator"
    command = [sys.executable, "-m", module, str(item.landing_zone), "--watch", "0.1"]
    # a job in the background of a shell ignores the interrupt, and so would its children
    restored = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=restored
    ) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(2)]
        item.land(2, rows((2, "b", 4)))
        lines += [process.stdout.readline() for _ in range(3)]
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

    assert process.returncode == 0
    assert [line.split()[2:] for line in (lines[1], lines[4])] == [
        ["1", "1", "1"],
        ["2", "1", "1"],
    ]
    assert rest == ""
    assert item.rows() == [(1, "a"), (2, "b")]
