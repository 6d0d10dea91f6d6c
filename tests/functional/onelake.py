"""A project publishes to OneLake: to its URL in production, which a server of the tests answers.

What is there is also in the folder that would be the project's landing zone without it, so that
all that looks at it, or changes it behind dbt's back, is the same for both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.inventory import table_folders
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.replicator.replicator import Replicator
from dbt.adapters.openmirroring.service import reports
from tests.fabric_server import Database, FabricServer, table
from tests.functional.project import Project
from tests.onelake_server import ITEM, TOKEN, URL, WORKSPACE, OneLakeServer

TARGET = {
    "landing_zone": URL,
    "authentication": "token",
    "token": TOKEN,
    "staging_location": "staging",
}


def fabric(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    """Fabric's REST API, and in it the mirrored database of the landing zone in OneLake."""
    server = FabricServer(page_size=100)
    server.workspace(WORKSPACE, Database(ITEM.partition(".")[0]))
    server.connect(monkeypatch)
    monkeypatch.setattr(reports, "PAUSE", 0.01)
    return server


def publish_to_onelake(project: Project, server: OneLakeServer, fabric: FabricServer) -> None:
    """Let a project publish to OneLake."""
    if project.target.get("method") == "connect":
        pytest.skip("the one token of a profile is that of Spark Connect")
    share(project.landing_zone, server, fabric)
    project.onelake = server
    project.target |= TARGET
    project.write_project()


def share(landing_zone: Path, server: OneLakeServer, fabric: FabricServer) -> None:
    """Have in a folder what is in OneLake; Fabric mirrors each table that has files."""

    def mirrored() -> list[dict[str, Any]]:
        folders = table_folders(LocalStorage(landing_zone))
        return [
            table(folder.mirrored_table)
            for folder in folders
            if any((landing_zone / folder.path).rglob("[0-9]*.*"))
        ]

    server.share(landing_zone)
    fabric.workspaces[0].databases[0].scan = mirrored


def apply(landing_zone: Path) -> list[dict[str, Any]]:
    """Apply what was published, and tell how it is about the tables, as Fabric does."""
    Replicator(landing_zone).scan()
    content = (landing_zone.parent / "Monitoring" / "tables.json").read_text()
    return [_as_rest_tells(told) for told in json.loads(content)["tables"]]


def _as_rest_tells(told: dict[str, Any]) -> dict[str, Any]:
    more = {}
    if told["metrics"]["lastSyncTimeUtc"]:
        more["last_sync"] = told["metrics"]["lastSyncTimeUtc"]
    if told["errorMessage"]:
        more["error"] = told["errorMessage"]
    return table(f"{told['sourceSchemaName']}.{told['sourceTableName']}", told["status"], **more)
