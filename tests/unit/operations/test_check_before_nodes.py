"""The check of the landing zone before the first node of a run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.errors import LandingZoneUnavailableError
from dbt.adapters.openmirroring.landing_zone.inventory import table_folders
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder


def destination(project: Path, landing_zone: str, dry_run: bool = False) -> Destination:
    target = Target(landing_zone=landing_zone, dry_run=dry_run)
    return Destination(target, project=lambda: project, warehouse=lambda: None)


def seen_by_git(project: Path) -> set[str]:
    """The files that `git add` would take."""
    git = shutil.which("git")
    assert git
    subprocess.run([git, "init", "--quiet", project], check=True)
    listed = [git, "-C", str(project), "ls-files", "--others", "--exclude-standard"]
    return set(subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    "landing_zone", ["m.MirroredDatabase/Files/LandingZone", "Files/LandingZone", "data/landing"]
)
def test_rows_of_a_landing_zone_do_not_get_into_git(tmp_path: Path, landing_zone: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "orders.sql").write_text("select 1 as id")
    zone = tmp_path / landing_zone
    has_tables = zone.name == "LandingZone"
    tables = zone.parents[1] / "Tables"
    if has_tables:
        tables.mkdir(parents=True)

    destination(tmp_path, landing_zone).check_before_nodes()

    for folder in (zone, *([tables] if has_tables else [])):
        (folder / "s.schema" / "orders").mkdir(parents=True)
        (folder / "s.schema" / "orders" / "1.parquet").write_bytes(b"rows")
    assert seen_by_git(tmp_path) == {"models/orders.sql"}
    assert table_folders(destination(tmp_path, landing_zone).storage()) == {
        TableFolder("s", "orders")
    }


def test_rules_of_the_user_stay(tmp_path: Path) -> None:
    rules = tmp_path / "m.MirroredDatabase" / ".gitignore"
    rules.parent.mkdir()
    rules.write_text("*.crc\n")

    destination(tmp_path, "m.MirroredDatabase/Files/LandingZone").check_before_nodes()

    assert rules.read_text() == "*.crc\n"


def test_a_project_in_the_folder_of_its_mirrored_database_stays_in_git(tmp_path: Path) -> None:
    project = tmp_path / "m.MirroredDatabase" / "project"
    project.mkdir(parents=True)

    destination(project, "../Files/LandingZone").check_before_nodes()

    assert not (project.parent / ".gitignore").exists()


def test_a_dry_run_checks_the_landing_zone_without_writing(tmp_path: Path) -> None:
    destination(
        tmp_path, "m.MirroredDatabase/Files/LandingZone", dry_run=True
    ).check_before_nodes()

    assert list(tmp_path.iterdir()) == []
    (tmp_path / "m.MirroredDatabase").write_text("in the way")
    for dry_run in (True, False):
        with pytest.raises(LandingZoneUnavailableError, match="Not a directory"):
            destination(
                tmp_path, "m.MirroredDatabase/Files/LandingZone", dry_run
            ).check_before_nodes()


def test_a_check_at_the_same_time_as_another_one_is_right(tmp_path: Path) -> None:
    given = destination(tmp_path, "landing")

    with given.storage().lock("_scratchPad/_debug"):
        given.check_before_nodes()
