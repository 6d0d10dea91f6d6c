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
BACK: dict[str, list[dict[str, Any]]] = {
    "alias": [{"alias": "zcase"}, {"alias": "ZCase"}],
    "schema_folder": [{"schema_folder": True}, {"schema_folder": False}],
}


@pytest.mark.parametrize(
    ("moved", "materialized", "publish"),
    [
        ("alias", "table", "immediately"),
        ("alias", "incremental", "on_request"),
        ("schema_folder", "incremental", "immediately"),
        ("schema_folder", "table", "on_request"),
    ],
)
def test_a_table_that_moves_is_loaded_where_it_goes_and_rebuilt_where_it_comes_back(
    project: Project, moved: str, materialized: str, publish: str
) -> None:
    """Where it was it is an orphan."""
    there, elsewhere = BACK[moved]
    folder = ""
    for number, place in enumerate((there, elsewhere, there), start=1):
        project.model(
            NUMBERED, materialized=materialized, unique_key="id", publish=publish, **place
        )
        name = place.get("alias", "orders")
        is_root = not place.get("schema_folder", True)
        was, folder = folder, name if is_root else f"{project.schema}.schema/{name}"

        response = project.run("--vars", f"n: {number}")

        if publish == "on_request":
            assert project.dbt("run-operation", "mirror_publish")
        elif number > 1:
            assert response["publication"] == ("initial" if number == 2 else "rebuild")
            assert response["reason"] == f"the table folder was {was} before"
        path = f"dbo/{name}" if is_root else f"{project.schema}/{name}"
        mirrored = mirror(project, path)
        assert mirrored == project.relation(name.lower())
        assert mirrored.total() == (1 if materialized == "table" else number)
    orphan = "orders" if moved == "schema_folder" else f"{project.schema}.ZCase"
    named = f"{{dry_run: false, table: {orphan}}}"
    assert len(folders(project)) == 2
    assert project.dbt("run-operation", "mirror_drop_orphans", "--args", named)
    assert folders(project) == {folder}
    project.assert_tidy()


@pytest.mark.needs(local="two landing zones on this machine")
@pytest.mark.parametrize("materialized", ["table", "table with hooks", "incremental"])
def test_a_table_that_comes_back_to_a_landing_zone_is_published_there(
    project: Project, materialized: str
) -> None:
    hooks = {"post_hook": "insert into {{ this }} values (0)"} if "hooks" in materialized else {}
    materialized = materialized.split()[0]
    zones = ["mirror.MirroredDatabase", "other.MirroredDatabase"]
    project.model(NUMBERED, materialized=materialized, unique_key="id", **hooks)
    for number, zone in enumerate((*zones, zones[0]), start=1):
        project.landing_zone = project.path / zone / "Files" / "LandingZone"
        project.target["landing_zone"] = str(project.landing_zone)
        project.write_project()
        if number == 3 and materialized == "incremental":
            message = project.fail("--vars", f"n: {number}")
            assert "published to another landing zone" in message
            assert message.index("mirror_rebuild") < message.index("--full-refresh")
            named = f"{{table: {project.schema}.orders}}"
            assert project.dbt("run-operation", "mirror_rebuild", "--args", named)
            project.assert_mirrored()

        response = project.run("--vars", f"n: {number}")

        project.assert_mirrored()
        if materialized == "table" and number == 3:
            assert response["reason"] == "was published to another landing zone meanwhile"
    expected = 1 + len(hooks) if materialized == "table" else 3
    assert sum(project.mirror().values()) == expected


def test_a_table_without_a_schema_folder_is_also_that_of_the_default_schema(
    project: Project,
) -> None:
    project.write(
        "macros/schemas.sql",
        "{% macro generate_schema_name(name, node) %}{{ name or target.schema }}{% endmacro %}",
    )
    project.model(ROWS, schema_folder=False)
    project.model(ROWS, "other", schema="dbo", alias="orders")

    assert "would both be the mirrored table dbo.orders" in project.stop()

    assert not folders(project)


def test_two_models_cannot_have_one_name_without_schema_folders(project: Project) -> None:
    project.model(ROWS, unique_key="id", schema_folder=False)
    project.run()
    other: dict[str, Any] = {"schema": "archive", "alias": "orders", "schema_folder": False}
    project.model(ROWS, "archived", unique_key="id", **other)

    for args in ([], ["--full-refresh", "--select", "archived"]):
        error = project.stop(*args)
        assert f"model.shop.archived ({project.schema}_archive.orders)" in error
        assert f"model.shop.orders ({project.schema}.orders)" in error
        assert "would both be the mirrored table dbo.orders" in error

    (project.path / "models" / "orders.sql").unlink()
    error = project.fail("--full-refresh", "--select", "archived")

    assert f"belongs to model.shop.orders in the schema '{project.schema}'" in error
    assert mirror(project, "dbo/orders") == project.relation()
