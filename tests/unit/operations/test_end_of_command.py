"""What a command with `wait_for_mirror` tells at its end."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import patch

import pytest
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.openmirroring.destination import destination as of_command
from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase
from dbt.adapters.openmirroring.service.monitoring import Service
from tests.fabric_server import Credential, Database, FabricServer, table

APPLIED = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "All published files are applied (1 table)"),
        (1, "Published, but not applied: sales.orders"),
    ],
    ids=["before", "after"],
)
def test_it_tells_whether_fabric_has_applied_what_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, told: str
) -> None:
    fabric, database = FabricServer(), Database("shop")
    fabric.connect(monkeypatch)
    fabric.workspace("Sales", database)
    database.scan = lambda: [table("sales.orders", last_sync=f"{APPLIED:%Y-%m-%dT%H:%M:%S}Z")]
    asked = MirroredDatabase("Sales", "shop.MirroredDatabase", Credential(), fabric.clock)
    target = Target(landing_zone=str(tmp_path), wait_for_mirror=0.01)
    command = Destination(target, lambda: tmp_path, lambda: None)
    command.service = Service(asked.report)
    command.published = {"sales.orders": APPLIED + timedelta(seconds=seconds)}
    lines: list[str] = []

    with (
        patch.object(AdapterLogger, "warning", lambda _, text: lines.append(text)),
        patch.object(of_command, "note", lines.append),
    ):
        command.end_command()

    assert lines[0] == "Waiting up to 0.01 seconds until all published files are applied"
    assert lines[1].startswith(told)
    assert len(lines) == 2
    assert ("OM714" in lines[1]) == (seconds > 0)
