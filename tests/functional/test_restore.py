"""A run goes on where Spark has lost everything: its snapshots come from the mirrored tables.

Another machine is a Spark without the schemas of the project.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtRuntimeError
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.node import mirrored_rows
from tests.functional.nodes import KINDS, named, told, write_node
from tests.functional.project import Project
from tests.variants import parts, some

pytestmark = pytest.mark.needs(
    local="the replicator applies landing zones on this machine",
    pyspark="the mirrored tables are on this machine",
)

ORDERS = "select * from values (1, 'a'), (2, 'b'), (3, 'c') as t(id, name)"


@pytest.fixture
def project(project: Project) -> Project:
    project.target |= {"replicate": True, "restore_baseline": True}
    project.write_project()
    return project


def published(project: Project, node: str = "orders") -> str:
    return str(project.results()[node]["message"]).partition(" · ")[0]


def table(project: Project, name: str = "orders") -> DeltaTable:
    return DeltaTable(project.landing_zone.parents[1] / "Tables" / project.schema / name)


@pytest.mark.parametrize("kinds", parts(KINDS, 4))
def test_three_runs_on_three_machines_publish_what_has_changed(
    project: Project, kinds: list[str]
) -> None:
    for step in (0, 1):
        for kind in kinds:
            write_node(project, kind, step, named(kind))
        project.run(command="build")
        for kind in kinds:
            assert published(project, named(kind)) == told(kind, step)
            project.assert_mirrored(named(kind))
        project.go_to_another_machine()

    project.run(command="build")

    for kind in kinds:
        expected = "+1 ~0 -0" if kind == "append" else "unchanged"
        assert published(project, named(kind)) == expected
        project.assert_mirrored(named(kind))


def test_a_node_that_is_not_selected_is_restored_for_those_that_read_it(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    project.model("select * from {{ ref('orders') }} where id > 1", "some", materialized="view")
    project.model("select count(*) as n from {{ ref('some') }}", "counted")
    project.write(
        "models/orders.yml", "models: [{name: counted, data_tests: [mirror_equals_model]}]"
    )
    project.run()
    project.go_to_another_machine()

    project.run("--select", "some", "counted")

    assert published(project, "counted") == "unchanged"
    assert len(project.relation()) == 3
    project.go_to_another_machine()
    project.run(command="test")


@pytest.mark.parametrize("kind", some(["table", "append", "seed", "dbt snapshot"]))
@pytest.mark.core
def test_without_the_setting_a_run_is_refused_and_names_the_ways_out(
    project: Project, kind: str
) -> None:
    project.target["restore_baseline"] = False
    project.write_project()
    write_node(project, kind, 0)
    project.run(command="build")
    project.go_to_another_machine()
    files = project.files()

    refused = project.fail(command="build")

    assert "Spark has no baseline" in refused
    assert "set `restore_baseline: true` in the target" in refused
    assert project.files() == files
    (way_out,) = re.findall(r"`dbt (build --full-refresh [^`]+)`", refused)
    assert project.dbt(*way_out.split())
    project.assert_mirrored()


@pytest.mark.core
def test_a_batch_that_a_lost_machine_has_committed_is_published_from_its_files(
    project: Project,
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    project.model(ORDERS.replace("'b'", "'x'"), unique_key="id")
    with patch.object(Publication, "publish", side_effect=DbtRuntimeError("killed")):
        assert not project.dbt("run")
    assert len(project.files()) == 1
    project.go_to_another_machine()
    project.target["restore_baseline"] = False
    project.write_project()

    assert "set `restore_baseline: true` in the target" in project.fail()
    assert len(project.files()) == 2, "the files of the batch need no rows of Spark"

    project.target["restore_baseline"] = True
    project.write_project()
    project.run()

    assert published(project) == "unchanged"
    assert len(project.files()) == 2
    project.assert_mirrored()


@pytest.mark.core
def test_a_mirrored_table_that_others_have_changed_is_repaired(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.model(ORDERS, unique_key="id")
    project.write(
        "models/orders.yml", "models: [{name: orders, data_tests: [mirror_equals_model]}]"
    )
    project.run()
    table(project).delete("id = 1")
    table(project).update({"name": "'z'"}, predicate="id = 2")
    added = pa.Table.from_pylist(
        [{"id": 9, "name": "z"}], pa.schema(table(project).schema().to_arrow())
    )
    write_deltalake(table(project), added, mode="append")
    assert not project.dbt("test")

    assert project.dbt("run-operation", "mirror_repair", "--args", "{table: orders}")

    assert "+1 ~1 -1 · #2 · mirror_repair" in capsys.readouterr().out
    assert project.dbt("test")
    project.run()
    assert published(project) == "unchanged"
    project.assert_mirrored()


def test_only_an_older_state_of_spark_is_offered_for_replacement(project: Project) -> None:
    batches = {"older": "20200101000000aaaaaaaa", "newer": "29990101000000aaaaaaaa"}
    for name in batches:
        project.model(ORDERS, name, unique_key="id")
    project.run()
    for name, batch in batches.items():
        mark = f"set tblproperties ('openmirroring.batch_id'='{batch}')"
        project.sql(f"alter table {project.schema}.{name} {mark}")

    project.fail()

    for name, batch in batches.items():
        refused = project.results()[name]["message"]
        assert f"Spark has batch {batch}" in refused
        assert ("mirror_restore" in refused) == (name == "older")
        if name == "older":
            offered = re.findall(r"`dbt (run-operation mirror_restore --args '.+?')`", refused)
    offered.append("run-operation mirror_restore --args '{table: newer}'")
    for way_out in offered:
        assert project.dbt(*shlex.split(way_out))
    project.run()
    for name in batches:
        assert published(project, name) == "unchanged"
        project.assert_mirrored(name)


def test_a_full_refresh_restores_nothing(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    project.go_to_another_machine()
    forget_mirror(project)

    project.run("--full-refresh")

    assert published(project) == "rebuild +3"


def forget_mirror(project: Project, name: str = "orders") -> None:
    """Take the mirrored table out of reach, so that nothing can be restored."""
    delta = Path(table(project, name).table_uri.removeprefix("file://"))
    delta.rename(delta.with_name("elsewhere"))


def test_a_dry_run_compares_with_what_it_restores_and_leaves_nothing_behind(
    project: Project,
) -> None:
    project.model(ORDERS, unique_key="id")
    project.model("select count(*) as n from {{ ref('orders') }}", "counted")
    project.run()
    before = project.state_of_zone()
    project.go_to_another_machine()
    project.model(ORDERS.replace("'b'", "'x'"), unique_key="id")

    with project.dry_run():
        project.run()

    assert published(project) == "would publish +0 ~1 -0"
    assert published(project, "counted") == "would publish nothing"
    assert project.state_of_zone() == before
    assert project.tables() == []


def test_a_mirrored_table_that_is_not_what_was_published_is_refused(project: Project) -> None:
    findings = {
        "of_rows": "has 2 rows, and 3 were published",
        "of_values": "rows with the same key",
        "of_columns": "has the columns id, name, more, and id, name were published",
    }
    for name in findings:
        project.model(ORDERS, name, unique_key="id")
    project.run()
    before = [project.files(name) for name in findings]
    project.go_to_another_machine()
    table(project, "of_rows").delete("id = 1")
    table(project, "of_values").update({"id": "2"}, predicate="id = 1")
    more = Field("more", PrimitiveType("string"))
    table(project, "of_columns").alter.add_columns([more])

    project.fail()

    for name, finding in findings.items():
        assert finding in project.results()[name]["message"]
    assert [project.files(name) for name in findings] == before
    assert project.tables() == []


def test_a_mirrored_table_that_is_behind_is_waited_for_and_then_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrored_rows, "ROUND", 0.5)
    names = ("behind", "absent")
    for name in names:
        project.model(ORDERS, name, unique_key="id")
    project.run()
    project.target["replicate"] = False
    project.write_project()
    project.model(f"{ORDERS} where id > 1", "behind", unique_key="id")
    project.run()
    forget_mirror(project, "absent")
    before = [project.files(name) for name in names]
    project.go_to_another_machine()

    project.fail()

    for name in names:
        refused = project.results()[name]["message"]
        assert "was not applied within 0.5 seconds" in refused
        assert "mirror_replicate" in refused
    assert [project.files(name) for name in names] == before
