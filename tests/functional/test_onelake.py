"""dbt publishes to OneLake, with the URL of production, to a server of the tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone import onelake_claim
from dbt.adapters.openmirroring.landing_zone.inventory import table_folders
from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from tests.fabric_server import FabricServer, table
from tests.functional.project import Project
from tests.onelake_server import TOKEN, URL, OneLakeServer


@pytest.fixture
def onelake(
    project: Project, server: OneLakeServer, fabric: FabricServer, tmp_path: Path
) -> Project:
    def mirrored() -> list[dict[str, Any]]:
        """Each table that has files at this moment."""
        seen = tmp_path / "seen"
        shutil.rmtree(seen, ignore_errors=True)
        server.download(seen)
        folders = table_folders(LocalStorage(seen))
        return [table(str(f)) for f in folders if list((seen / f.path).glob("*.parquet"))]

    fabric.workspaces[0].databases[0].scan = mirrored
    project.target |= {
        "landing_zone": URL,
        "authentication": "token",
        "token": TOKEN,
        "staging_location": "staging",
    }
    project.write_project()
    return project


def assert_mirrored(project: Project, server: OneLakeServer, table: str = "orders") -> None:
    """What is in OneLake makes the model's rows, and nothing is left half done, here or there."""
    shutil.rmtree(project.path / "mirror.MirroredDatabase", ignore_errors=True)
    server.download(project.landing_zone)
    project.assert_mirrored(table)
    assert not [path for path in (project.path / "staging").rglob("*") if path.is_file()]


def test_loads_changes_and_rebuilds_reach_onelake(
    onelake: Project, server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as it is in production, so that requests can be counted
    monkeypatch.setattr(onelake_claim, "RENEWAL", 600)
    onelake.model("select id, 'a' as name from range(1000)", unique_key="id")
    assert onelake.run()["publication"] == "initial"
    assert_mirrored(onelake, server)

    onelake.model("select id, if(id < 9, 'b', 'a') as name from range(3, 1001)", unique_key="id")
    server.requests.clear()
    assert onelake.run()["_message"] == "+1 ~6 -3 · #2"
    assert_mirrored(onelake, server)
    assert len(server.requests) == 22, server.counts()

    onelake.run()
    onelake.model("select id, 1 as number from range(10)", unique_key="id")
    assert onelake.run()["publication"] == "rebuild"
    assert_mirrored(onelake, server)


def test_large_tables_are_uploaded_in_several_files(
    onelake: Project, server: OneLakeServer
) -> None:
    onelake.model(
        "select id, sha2(cast(id as string), 512) as name from range(3000)",
        unique_key="id",
        target_file_size="32kb",
    )

    assert onelake.run()["files_written"] > 2

    assert_mirrored(onelake, server)


@pytest.mark.slow
def test_a_killed_run_is_finished_or_undone_by_the_next(
    onelake: Project, server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    onelake.model("select id, 0 as n from range(20)", unique_key="id")
    onelake.run()
    for point in range(1, 24, 3):
        onelake.model(f"select id, {point} as n from range({20 + point})", unique_key="id")
        server.fail("reset", after=point, times=10**6)
        assert not onelake.dbt("run"), point
        server.faults.clear()
        # the claim of a dead process expires
        server.advance(300)

        onelake.run()

        assert_mirrored(onelake, server)


def test_debug_checks_the_landing_zone(onelake: Project, server: OneLakeServer) -> None:
    assert onelake.dbt("debug")
    assert server.counts()["rename"] == 1

    server.fail("refused", times=10**6)
    assert not onelake.dbt("debug")


def test_operations_work_on_onelake(onelake: Project, server: OneLakeServer) -> None:
    onelake.model("select 1 as id", unique_key="id")
    onelake.model("select 1 as id", name="old", unique_key="id")
    onelake.run()
    (onelake.path / "models" / "old.sql").unlink()

    assert onelake.dbt("run-operation", "mirror_status")
    assert onelake.dbt("run-operation", "mirror_recover")
    assert onelake.dbt("run-operation", "mirror_drop_orphans", "--args", "{dry_run: false}")

    assert_mirrored(onelake, server)
    assert not onelake.folder("old").exists()
    # that is for local landing zones
    assert not onelake.dbt("run-operation", "mirror_replicate")
