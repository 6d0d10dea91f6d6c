"""Where tables are in a landing zone, and what it says of itself."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from dbt_common.exceptions import DbtRuntimeError
from deltalake import DeltaTable

from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests.delta_tables import content
from tests.functional.project import Project, Row, canonical

ROWS = "select id, 'a' as name from range(3)"


def mirror(project: Project, table: str) -> Counter[Row]:
    """A mirrored table by its path."""
    Replicator(project.landing_zone).scan()
    rows = content(DeltaTable(project.landing_zone.parents[1] / "Tables" / table))
    return Counter(canonical(row.items()) for row in rows.to_pylist())


def folders(project: Project) -> set[str]:
    found = project.landing_zone.rglob("_journal.json")
    return {str(path.parent.relative_to(project.landing_zone)) for path in found}


@pytest.mark.needs(local="the replicator applies landing zones on this machine")
def test_tables_of_several_schemas_and_of_none_are_beside_each_other(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """One without a schema folder is recovered, changed, documented and compared."""
    other = f"{project.schema}_archive"
    project.target["source"] = {"type": "SQL"}
    project.write_project()
    project.write(
        "models/models.yml",
        "models:\n  - name: at_root\n    data_tests: [mirror_equals_model]\n",
    )
    project.model(ROWS, unique_key="id")
    project.model(ROWS, "archived", unique_key="id", schema="archive", alias="orders")
    project.model(ROWS, "at_root", unique_key="id", schema_folder=False)
    with patch.object(Publication, "publish", side_effect=DbtRuntimeError("killed")):
        project.fail()
    assert (project.landing_zone / "_scratchPad" / "at_root" / "manifest.json").exists()
    assert not folders(project), "the manifests are all that there is"
    assert project.dbt("run-operation", "mirror_recover")
    assert mirror(project, "dbo/at_root") == project.relation("at_root")
    project.target["replicate"] = True
    project.write_project()
    assert project.dbt("build")
    project.model(
        ROWS.replace("range(3)", "range(1, 4)"), "at_root", unique_key="id", schema_folder=False
    )
    assert project.dbt("build")

    assert folders(project) == {
        f"{project.schema}.schema/orders",
        f"{other}.schema/orders",
        "at_root",
    }
    assert mirror(project, "dbo/at_root") == project.relation("at_root")
    project.assert_mirrored()
    events = json.loads((project.landing_zone / "_partnerEvents.json").read_text())
    assert events["sourceInfo"] == {"sourceType": "SQL"}
    capsys.readouterr()
    assert project.dbt("run-operation", "mirror_status")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "at_root" in line]
    assert line.split()[:3] == ["at_root", "published", "#2"]
    assert "Replicating" in line


NUMBERED = "select {{ var('n') }} as id"
# where a table is first, and where it goes to and comes back from; how it is built and published
MOVED: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "cased": ({"alias": "zcase"}, {"alias": "ZCase"}, "table", "immediately"),
    "held_cased": ({"alias": "ycase"}, {"alias": "YCase"}, "incremental", "on_request"),
    "rooted": ({}, {"schema_folder": False}, "incremental", "immediately"),
    "held_rooted": ({}, {"schema_folder": False}, "table", "on_request"),
}


def test_a_table_that_moves_is_loaded_where_it_goes_and_rebuilt_where_it_comes_back(
    project: Project,
) -> None:
    """Where it was it is an orphan."""
    # to a catalog of Iceberg, names in another case are those of other tables
    is_told_by_case = project.file_format == "iceberg"
    moved = {
        name: case for name, case in MOVED.items() if not (is_told_by_case and "cased" in name)
    }

    def place(name: str, step: int) -> tuple[str, str]:
        """The table folder, and the path of the mirrored table."""
        there, elsewhere, *_ = moved[name]
        config = elsewhere if step == 1 else there
        alias = config.get("alias", name)
        if config.get("schema_folder", True):
            return f"{project.schema}.schema/{alias}", f"{project.schema}/{alias}"
        return alias, f"dbo/{alias}"

    for step in range(3):
        for name, (*places, materialized, publish) in moved.items():
            config: dict[str, Any] = {"materialized": materialized, "publish": publish}
            project.model(NUMBERED, name, unique_key="id", **config, **places[step % 2])

        project.run("--vars", f"n: {step}")

        responses = project.responses()
        assert project.dbt("run-operation", "mirror_publish")
        for name, (*_, materialized, publish) in moved.items():
            path = place(name, step)[1]
            if publish == "immediately" and step:
                was = place(name, step - 1)[0]
                assert responses[name]["publication"] == ("initial" if step == 1 else "rebuild")
                assert responses[name]["reason"] == f"the table folder was {was} before"
            mirrored = mirror(project, path)
            assert mirrored == project.relation(moved[name][0].get("alias", name))
            assert mirrored.total() == (1 if materialized == "table" else step + 1)
    assert len(folders(project)) == 2 * len(moved)
    for name in moved:
        orphan = place(name, 1)[0].replace(".schema/", ".")
        named = f"{{dry_run: false, table: {orphan}}}"
        assert project.dbt("run-operation", "mirror_drop_orphans", "--args", named)
    assert folders(project) == {place(name, 2)[0] for name in moved}
    project.assert_tidy()


@pytest.mark.needs(local="two landing zones on this machine")
def test_a_table_that_comes_back_to_a_landing_zone_is_published_there(project: Project) -> None:
    hook = {"post_hook": "insert into {{ this }} values (0)"}
    tables: dict[str, tuple[dict[str, Any], int]] = {
        "a_table": ({}, 1),
        "hooked": (hook, 2),
        "new_rows": ({"materialized": "incremental"}, 3),
    }
    zones = ["mirror.MirroredDatabase", "other.MirroredDatabase"]
    for name, (config, _) in tables.items():
        project.model(NUMBERED, name, unique_key="id", **config)
    for number, zone in enumerate((*zones, zones[0]), start=1):
        project.landing_zone = project.path / zone / "Files" / "LandingZone"
        project.target["landing_zone"] = str(project.landing_zone)
        project.write_project()
        if number == 3:
            message = project.fail("--vars", f"n: {number}")
            assert "published to another landing zone" in message
            assert message.index("mirror_rebuild") < message.index("--full-refresh")
            reason = "was published to another landing zone meanwhile"
            assert {project.responses()[name]["reason"] for name in ("a_table", "hooked")} == {
                reason
            }
            named = f"{{table: {project.schema}.new_rows}}"
            assert project.dbt("run-operation", "mirror_rebuild", "--args", named)
            project.assert_mirrored("new_rows")

        project.run("--vars", f"n: {number}")

        for name in tables:
            project.assert_mirrored(name)
    for name, (_, rows) in tables.items():
        assert sum(project.mirror(name).values()) == rows
