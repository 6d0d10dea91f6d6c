"""The check of the landing zone by `dbt debug`, and before the first node of a run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtConfigError

from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
)
from dbt.adapters.openmirroring.landing_zone.inventory import table_folders
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.command import refuse_same_tables
from dbt.adapters.openmirroring.service.reports import ServiceError

ITEM = "m.MirroredDatabase/Files/LandingZone"


def destination(project: Path, landing_zone: str = ITEM, **settings: Any) -> Destination:
    target = Target(landing_zone=landing_zone, **settings)
    return Destination(target, project=lambda: project, warehouse=lambda: None)


def seen_by_git(project: Path) -> set[str]:
    """The files that `git add` would take."""
    git = shutil.which("git")
    assert git
    subprocess.run([git, "init", "--quiet", project], check=True)
    listed = [git, "-C", str(project), "ls-files", "--others", "--exclude-standard"]
    return set(subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.skipif(not shutil.which("git"), reason="Git is not installed")
@pytest.mark.parametrize("landing_zone", [ITEM, "Files/LandingZone", "data/landing"])
def test_rows_of_a_landing_zone_do_not_get_into_git(tmp_path: Path, landing_zone: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "orders.sql").write_text("select 1 as id")
    zone = tmp_path / landing_zone
    folders = [zone]
    if zone.name == "LandingZone":
        folders.append(zone.parents[1] / "Tables")
        folders[1].mkdir(parents=True)

    destination(tmp_path, landing_zone).check_before_nodes()

    for folder in folders:
        (folder / "s.schema" / "orders").mkdir(parents=True)
        (folder / "s.schema" / "orders" / "1.parquet").write_bytes(b"rows")
    assert seen_by_git(tmp_path) == {"models/orders.sql"}
    assert table_folders(destination(tmp_path, landing_zone).storage()) == {
        TableFolder("s", "orders")
    }


def test_rules_of_the_user_stay_and_a_project_in_the_folder_of_its_item(tmp_path: Path) -> None:
    rules = tmp_path / "m.MirroredDatabase" / ".gitignore"
    rules.parent.mkdir()
    rules.write_text("*.crc\n")
    project = tmp_path / "other.MirroredDatabase" / "project"
    project.mkdir(parents=True)

    destination(tmp_path).check_before_nodes()
    destination(project, "../Files/LandingZone").check_before_nodes()

    assert rules.read_text() == "*.crc\n"
    assert not (project.parent / ".gitignore").exists()


def test_a_project_that_is_reached_by_a_link_is_not_hidden_from_git(tmp_path: Path) -> None:
    item = tmp_path / "m.MirroredDatabase"
    (item / "project").mkdir(parents=True)
    (tmp_path / "link").symlink_to(item / "project")

    destination(tmp_path / "link", str(tmp_path / ITEM)).check_before_nodes()

    assert not (item / ".gitignore").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
@pytest.mark.parametrize("setting", ["replicate", "restore_baseline"])
def test_mirrored_tables_need_a_place_beside_the_folder_that_a_landing_zone_is(
    tmp_path: Path, setting: str
) -> None:
    """A link does not count, but the folder that it leads to."""
    for name, folder in (("right", ITEM), ("wrong/Files/LandingZone", "data")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(tmp_path / folder)

    destination(tmp_path, "right", **{setting: True}).check_before_nodes()
    for zone in ("data", "wrong/Files/LandingZone"):
        with pytest.raises(DbtConfigError, match=f"`{setting}` needs.* ends in Files/LandingZone"):
            destination(tmp_path, zone, **{setting: True}).check_before_nodes()
        assert list((tmp_path / "data").iterdir()) == []


def test_a_dry_run_checks_the_landing_zone_without_writing(tmp_path: Path) -> None:
    destination(tmp_path, dry_run=True).check_before_nodes()

    assert list(tmp_path.iterdir()) == []
    (tmp_path / "m.MirroredDatabase").write_text("in the way")
    for dry_run in (True, False):
        with pytest.raises(LandingZoneUnavailableError, match="Not a directory"):
            destination(tmp_path, dry_run=dry_run).check_before_nodes()


def test_a_folder_of_this_machine_belongs_to_no_mirrored_database(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="it belongs to no mirrored database in Fabric"):
        _ = destination(tmp_path).database


@pytest.mark.parametrize("left", [[], ["file"], ["renamed"], ["file", "renamed"]])
def test_a_check_after_one_that_was_killed_finds_nothing_wrong(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: list[str]
) -> None:
    monkeypatch.setattr(Destination, "storage", lambda _: storage)
    for name in left:
        storage.write(f"_scratchPad/_debug/{name}", b"")

    destination(tmp_path).check()

    assert storage.list("_scratchPad") == []


def test_a_check_leaves_the_file_of_another_check_alone(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dbt debug` says so; a run goes on."""
    monkeypatch.setattr(Destination, "storage", lambda _: storage)
    with storage.lock("_scratchPad/_debug"):
        storage.write("_scratchPad/_debug/file", b"")

        with pytest.raises(ConcurrentPublicationError):
            destination(tmp_path).check()
        destination(tmp_path).check_before_nodes()

        assert [entry.name for entry in storage.list("_scratchPad/_debug")] == ["file"]


def model(name: str, alias: str, schema: str = "sales", kind: str = "model", **config: Any) -> Any:
    return SimpleNamespace(
        unique_id=f"{kind}.shop.{name}",
        resource_type=kind,
        schema=schema,
        alias=alias,
        config={"materialized": "table", **config},
    )


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (model("a", "orders"), model("b", "Orders"), "one table for Spark"),
        (model("a", "orders"), model("b", "ORDERS", mirror=False), "one table for Spark"),
        (model("a", "orders"), model("b", "ORDERS", materialized="view"), "one table for Spark"),
        (model("a", "orders"), model("b", "ORDERS", kind="seed"), "one table for Spark"),
        (model("a", "orders"), model("b", "oRDERS", kind="snapshot"), "one table for Spark"),
        (model("a", "orders", mirror=False), model("b", "Orders", mirror=False), ""),
        (model("a", "orders", mirror=False), model("b", "Orders", materialized="view"), ""),
        (model("a", "orders"), model("b", "orders", "other"), ""),
        (model("a", "orders"), model("b", "orders", materialized="ephemeral"), ""),
        (
            model("a", "orders", schema_folder=False),
            model("b", "orders", "other", schema_folder=False),
            "`schema_folder: false` puts a table folder at the root",
        ),
        (model("a", "orders"), model("b", "orders", "other", schema_folder=False), ""),
        (
            model("a", "orders", schema_folder=False),
            model("b", "orders", "dbo"),
            "would both be the mirrored table dbo.orders",
        ),
    ],
)
def test_two_nodes_are_not_one_table_for_spark_or_in_the_mirror(
    one: Any, other: Any, told: str
) -> None:
    if not told:
        refuse_same_tables([one, other])
        return
    with pytest.raises(CompilationError, match=told) as raised:
        refuse_same_tables([other, one])
    for node in (one, other):
        assert f"{node.unique_id} (" in str(raised.value)
