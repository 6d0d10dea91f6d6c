"""A run goes on where Spark has lost everything: its snapshots come from the mirrored tables.

Another machine is a Spark without the schemas of the project.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtRuntimeError
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.node import mirrored_rows
from tests.functional.project import Project

pytestmark = pytest.mark.pyspark("the mirrored tables are on this machine")

ORDERS = "select * from values (1, 'a'), (2, 'b'), (3, 'c') as t(id, name)"
INCREMENTAL = """
    select cast(id as int) as id, concat('{name} ', id) as name from range({begin}, {end})
    {{% if is_incremental() %}} where id >= {begin} {{% endif %}}
"""


@pytest.fixture
def project(project: Project) -> Project:
    project.target |= {"replicate": True, "restore_snapshots": True}
    project.write_project()
    return project


def published(project: Project, node: str = "orders") -> str:
    return str(project.results()[node]["message"]).partition(" · ")[0]


def table(project: Project) -> DeltaTable:
    return DeltaTable(project.landing_zone.parents[1] / "Tables" / project.schema / "orders")


# Kinds of nodes: each run writes the node's rows, and what it must publish.


def table_model(project: Project, run: int) -> str:
    project.model(ORDERS.replace("'b'", repr("b" * run)), unique_key="id")
    return ["initial +3", "+0 ~1 -0", "+0 ~1 -0"][run - 1]


def keyless_model(project: Project, run: int) -> str:
    project.model(f"select id, id / 2 as half from range({3 + run})")
    return ["initial +4", "+1 ~0 -0", "+1 ~0 -0"][run - 1]


def incremental_model(**config: Any) -> Callable[[Project, int], str]:
    def write(project: Project, run: int) -> str:
        sql = INCREMENTAL.format(begin=3 * run - 3, end=3 * run + 1, name=f"run {run} of")
        project.model(sql, materialized="incremental", **config)
        is_keyed = "unique_key" in config
        return ["initial +4", "+3 ~1 -0", "+3 ~1 -0"][run - 1] if is_keyed else _appended(run)

    return write


def _appended(run: int) -> str:
    return "initial +4" if run == 1 else "+4 ~0 -0"


def seed(project: Project, run: int) -> str:
    rows = "".join(f"{number},{'x' * run},2024-01-0{number}\n" for number in range(1, 4))
    project.write("seeds/orders.csv", f"id,name,day\n{rows}4,,\n")
    project.write(
        "seeds/seeds.yml",
        "seeds: [{name: orders, config: {unique_key: id, column_types: {day: date}}}]",
    )
    return ["initial +4", "+0 ~3 -0", "+0 ~3 -0"][run - 1]


def history(project: Project, run: int) -> str:
    project.write(
        "snapshots/orders.sql",
        "{% snapshot orders %}{{ config(unique_key='id', strategy='check', check_cols='all', "
        f"target_schema='{project.schema}') }}}} select 1 as id, {run} as n union all "
        "select 2, 0 {% endsnapshot %}",
    )
    return ["initial +2", "+1 ~1 -0", "+1 ~1 -0"][run - 1]


def python_model(project: Project, run: int) -> str:
    project.write(
        "models/orders.py",
        "def model(dbt, session):\n"
        "    dbt.config(materialized='table', unique_key='id')\n"
        f"    return session.sql('select id, id * {run} as n from range(3)')\n",
    )
    return ["initial +3", "+0 ~2 -0", "+0 ~2 -0"][run - 1]


CORE = ("merge",)
KINDS = {
    "table": table_model,
    "table without key": keyless_model,
    "append": incremental_model(incremental_strategy="append"),
    "merge": incremental_model(unique_key="id"),
    "delete+insert": incremental_model(unique_key="id", incremental_strategy="delete+insert"),
    "seed": seed,
    "dbt snapshot": history,
    "Python model": python_model,
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.core] * (kind in CORE)) for kind in KINDS],
)
def test_three_runs_on_three_machines_publish_what_has_changed(
    project: Project, kind: str
) -> None:
    write = KINDS[kind]
    if kind == "Python model" and project.target.get("method") == "thrift":
        pytest.skip("Thrift runs no Python models")

    for run in (1, 2, 3):
        expected = write(project, run)
        project.run(command="build")
        assert published(project) == expected
        project.assert_mirrored()
        project.go_to_another_machine()

    project.run(command="build")
    if kind != "append":
        assert published(project) == "unchanged"
    project.assert_mirrored()


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


@pytest.mark.core
def test_without_the_setting_a_run_is_refused_and_names_it(project: Project) -> None:
    project.target["restore_snapshots"] = False
    project.write_project()
    project.model(ORDERS, unique_key="id")
    project.run()
    project.go_to_another_machine()
    files = project.files()

    refused = project.fail()

    assert "Spark has no published snapshot" in refused
    assert "set `restore_snapshots: true` in the target" in refused
    assert project.files() == files
    project.target["restore_snapshots"] = True
    project.write_project()
    assert project.run()["_message"].startswith("unchanged")


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
    project.target["restore_snapshots"] = False
    project.write_project()

    assert "set `restore_snapshots: true` in the target" in project.fail()
    assert len(project.files()) == 2, "the files of the batch need no rows of Spark"

    project.target["restore_snapshots"] = True
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


def test_an_older_state_of_spark_is_replaced_on_request(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    older = "20200101000000aaaaaaaa"
    project.sql(
        f"alter table {project.schema}.orders "
        f"set tblproperties ('openmirroring.batch_id'='{older}')"
    )

    refused = project.fail()

    assert f"Spark has batch {older}" in refused
    assert "mirror_restore --args '{table: " in refused
    (way_out,) = re.findall(r"`dbt (run-operation mirror_restore --args '.+?')`", refused)
    assert project.dbt(*shlex.split(way_out))
    project.run()
    assert published(project) == "unchanged"
    project.assert_mirrored()


def test_a_later_state_of_spark_is_not_offered_for_replacement(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    project.sql(
        f"alter table {project.schema}.orders "
        "set tblproperties ('openmirroring.batch_id'='29990101000000aaaaaaaa')"
    )

    assert "mirror_restore" not in project.fail()

    assert project.dbt("run-operation", "mirror_restore", "--args", "{table: orders}")
    project.assert_mirrored()


def test_a_full_refresh_restores_nothing(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    project.go_to_another_machine()
    forget_mirror(project)

    project.run("--full-refresh")

    assert published(project) == "rebuild +3"


def forget_mirror(project: Project) -> None:
    """Take the mirrored table out of reach, so that nothing can be restored."""
    delta = Path(table(project).table_uri.removeprefix("file://"))
    delta.rename(delta.with_name("elsewhere"))


def test_a_table_without_rows_comes_back_without_rows(project: Project) -> None:
    nested = "array(named_struct('a b', 1)) as list, cast(1 as decimal(9, 2)) as price"
    project.model(f"select id, name, {nested} from ({ORDERS}) where id > 5", unique_key="id")
    project.run()
    project.go_to_another_machine()
    forget_mirror(project)

    project.run()

    assert published(project) == "unchanged"


@pytest.mark.core
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


def test_a_node_that_waits_for_its_tests_goes_on_elsewhere(project: Project) -> None:
    project.write(
        "models/orders.yml",
        "models: [{name: orders, columns: [{name: name, data_tests: [unique]}]}]",
    )
    project.model(ORDERS, unique_key="id", publish="after_tests")
    project.run(command="build")
    project.model(ORDERS.replace("'b'", "'c'"), unique_key="id", publish="after_tests")
    assert not project.dbt("build")
    project.go_to_another_machine()

    project.model(ORDERS.replace("'b'", "'x'"), unique_key="id", publish="after_tests")
    project.run(command="build")

    project.assert_mirrored()
    assert len(project.files()) == 2


def test_a_restored_snapshot_that_somebody_else_changes_is_noticed(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    project.go_to_another_machine()
    assert project.run()["_message"].startswith("unchanged")
    project.sql(f"insert into {project.schema}.orders values (9, 'z')")

    assert "somebody else has written to the table" in project.fail()

    assert project.dbt("run-operation", "mirror_restore", "--args", "{table: orders}")
    assert project.run()["_message"].startswith("unchanged")
    project.assert_mirrored()


@pytest.mark.parametrize("change", ["rows", "values", "column"])
def test_a_mirrored_table_that_is_not_what_was_published_is_refused(
    project: Project, change: str
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    before = project.files()
    project.go_to_another_machine()
    match change:
        case "rows":
            table(project).delete("id = 1")
            told = "has 2 rows, and 3 were published"
        case "values":
            table(project).update({"id": "2"}, predicate="id = 1")
            told = "rows with the same key"
        case "column":
            table(project).alter.add_columns([Field("more", PrimitiveType("string"))])
            told = "has the columns id, name, more, and id, name were published"

    refused = project.fail()

    assert told in refused
    assert project.files() == before
    assert project.tables() == []


@pytest.mark.parametrize("is_there", [True, False])
def test_a_mirrored_table_that_is_behind_is_waited_for_and_then_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    monkeypatch.setattr(mirrored_rows, "ROUND", 0.5)
    project.model(ORDERS, unique_key="id")
    project.run()
    project.target["replicate"] = False
    project.write_project()
    if is_there:
        project.model(f"{ORDERS} where id > 1", unique_key="id")
        project.run()
    else:
        forget_mirror(project)
    before = project.files()
    project.go_to_another_machine()

    refused = project.fail()

    assert "was not applied within 0.5 seconds" in refused
    assert "mirror_replicate" in refused
    assert project.files() == before
