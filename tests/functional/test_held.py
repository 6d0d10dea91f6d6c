"""Tables that are published after their tests, on request, or not if they lose too many rows."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import Owner, new_batch_id
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.records import HeldRecord, Journal
from dbt.adapters.openmirroring.protocol.facts import Held
from tests.functional.nodes import write_node
from tests.functional.project import Project

NOT_NULL = """
models:
  - name: orders
    columns:
      - name: name
        data_tests: [not_null]
"""
GATED: dict[str, Any] = {"unique_key": "id", "publish": "after_tests"}


def orders(project: Project, *values: str, **config: Any) -> None:
    rows = f"values {', '.join(values)}"
    sql = f"select id, cast(name as string) as name from {rows} as t(id, name)"
    project.model(sql, **(GATED | config))


def published(project: Project, table: str = "orders") -> set[tuple[str, ...]]:
    """The rows of the mirror, without their column names."""
    return {tuple(value.partition(" ")[2] for _, value in row) for row in project.mirror(table)}


@pytest.fixture
def tested(project: Project) -> Project:
    """A project with a test that a NULL fails, published once."""
    project.write("models/orders.yml", NOT_NULL)
    orders(project, "(1, 'a')", "(2, 'b')")
    assert project.dbt("build")
    assert published(project) == {("1", "a"), ("2", "b")}
    return project


@pytest.mark.core
def test_rows_are_published_at_the_end_of_the_command_in_which_their_tests_pass(
    tested: Project,
) -> None:
    orders(tested, "(1, 'a')", "(2, 'c')", "(3, 'd')")

    assert tested.dbt("build")

    tested.assert_mirrored()
    assert published(tested) == {("1", "a"), ("2", "c"), ("3", "d")}
    assert tested.results()["orders"]["message"] == "held until its tests pass"
    assert tested.tables() == ["orders"]


@pytest.mark.needs(session="files are looked at only on this machine")
@pytest.mark.needs(parquet="only files of Parquet tables are looked at")
def test_rows_in_the_same_files_are_not_held(tested: Project) -> None:
    assert tested.dbt("build")

    assert tested.results()["orders"]["adapter_response"]["publication"] == "unchanged"


@pytest.mark.core
def test_rows_that_fail_a_test_never_reach_the_mirror(tested: Project) -> None:
    orders(tested, "(1, 'a')", "(2, null)")

    assert not tested.dbt("build")

    assert published(tested) == {("1", "a"), ("2", "b")}
    assert len(tested.sql(f"select * from {tested.schema}.orders where name is null")) == 1
    [beside] = [name for name in tested.tables() if name.startswith("orders__published_")]
    assert len(tested.sql(f"select * from {tested.schema}.{beside}")) == 2

    # a fixed model is compared with what was published
    orders(tested, "(1, 'a')", "(3, 'c')")
    assert tested.dbt("build")

    tested.assert_mirrored()
    assert published(tested) == {("1", "a"), ("3", "c")}
    assert len(tested.files()) == 2


@pytest.mark.core
def test_tests_may_run_in_a_later_command(tested: Project) -> None:
    orders(tested, "(1, 'x')")
    assert tested.dbt("run")
    assert published(tested) == {("1", "a"), ("2", "b")}

    assert tested.dbt("test")

    tested.assert_mirrored()
    assert published(tested) == {("1", "x")}


def test_rows_whose_tests_see_nothing_stay_held(tested: Project) -> None:
    orders(tested, "(1, null)")

    for selection in (["--exclude", "test_type:data"], ["--empty"]):
        assert tested.dbt("build", *selection)

        assert published(tested) == {("1", "a"), ("2", "b")}


@pytest.mark.usefixtures("manifest_file")
def test_a_test_of_another_targets_rows_publishes_nothing(tested: Project) -> None:
    schema = tested.schema
    tested.name_schema(f"{schema}_production")
    assert tested.dbt("build", "--target-path", str(tested.path / "production"))
    tested.name_schema(schema)
    orders(tested, "(1, null)")
    assert tested.dbt("run")

    other = ["--defer", "--favor-state", "--state", str(tested.path / "production")]
    assert tested.dbt("test", *other)

    assert published(tested) == {("1", "a"), ("2", "b")}


@pytest.mark.needs(parquet="only the properties of these tables are in dbt's list of relations")
def test_rows_that_another_run_holds_meanwhile_are_noticed(project: Project) -> None:
    orders(project, "(1, 'a')", "(2, 'b')", publish="immediately")
    project.run()
    folder = TableFolder(project.schema, "orders")
    owner = Owner(project.name, "model.shop.orders", project.schema)
    build = new_batch_id()
    record = HeldRecord(owner, Held(build, why="until its tests pass"))
    project.storage.write(folder.held, record.to_json())
    table = f"{project.schema}.orders"
    journal = Journal.read(project.storage, folder.journal)
    assert journal

    held_by_another_run = [
        f"alter table {table} rename to {table}__published_{journal.batch.build}",
        f"create table {table} using parquet tblproperties ('openmirroring.batch_id' = '{build}') "
        "as select * from values (1, 'a'), (3, 'c') as t(id, name)",
    ]
    orders(project, "(1, 'a')", "(3, 'c')", "(2, 'b')", publish="immediately")
    project.write_project(**{"on-run-start": held_by_another_run})
    assert project.run()["rows_inserted"] == 1

    project.assert_mirrored()
    assert published(project) == {("1", "a"), ("2", "b"), ("3", "c")}


def test_a_retry_publishes_only_what_it_has_tested(tested: Project) -> None:
    tested.write("tests/flaky.sql", "select * from {{ ref('orders') }} where {{ var('bad', 1) }}")
    orders(tested, "(1, 'q')")
    assert not tested.dbt("build", "--vars", "{bad: id = 1}")

    # one test of two, which runs alone
    assert not tested.dbt("retry", "--vars", "{bad: id = 1}")
    assert published(tested) == {("1", "a"), ("2", "b")}

    assert tested.dbt("test", "--vars", "{bad: id = 2}")
    tested.assert_mirrored()


def test_rows_lose_their_partitions_while_they_are_held(project: Project) -> None:
    for n, config in enumerate(({"partition_by": "name"}, {"partition_by": "name"}, {})):
        orders(project, f"(1, 'a{n}')", f"({n + 2}, 'b')", publish="on_request", **config)
        assert project.dbt("run")

        assert project.dbt("run-operation", "mirror_publish")

        project.assert_mirrored()
        assert published(project) == {("1", f"a{n}"), (str(n + 2), "b")}


@pytest.mark.needs(local="the replicator applies landing zones on this machine")
def test_a_test_of_the_mirror_compares_what_was_published(project: Project) -> None:
    project.target["replicate"] = True
    project.write_project()
    test = "models:\n  - name: orders\n    data_tests: [mirror_equals_model]\n"
    project.write("models/orders.yml", test)

    for name in "ab":  # before anything is published, and after it
        orders(project, f"(1, '{name}')")
        assert project.dbt("build")
        project.assert_mirrored()


@pytest.mark.slow
def test_a_rebuild_that_is_refused_is_refused_before_rows_are_held(project: Project) -> None:
    orders(project, "(1, 'a')", on_breaking_change="fail")
    assert project.dbt("build")
    before = project.state()
    project.model("select 1 as id", on_breaking_change="fail", **GATED)

    assert "on_breaking_change is fail" in project.fail()

    assert project.state() == before
    assert project.dbt("run", "--full-refresh")
    project.assert_mirrored()


@pytest.mark.core
def test_a_publication_that_takes_too_much_away_is_held(project: Project) -> None:
    config = {"publish": "immediately", "max_deleted": "40%"}
    orders(project, *(f"({n}, 'a')" for n in range(4)), **config)
    project.run()
    orders(project, "(0, 'a')", "(1, 'a')", **config)

    for _ in range(2):  # again, unless somebody decides
        message = project.fail()

        assert "2 of 4 rows would be deleted" in message
        assert "mirror_publish" in message
        assert len(published(project)) == 4
    assert len(project.sql(f"select * from {project.schema}.orders")) == 2
    assert project.dbt("run-operation", "mirror_publish", "--args", "{table: orders}")
    project.assert_mirrored()
    assert len(published(project)) == 2


@pytest.mark.parametrize(
    "kind",
    [
        "dbt snapshot",
        pytest.param("seed", marks=pytest.mark.slow),
        pytest.param(
            "Python model",
            marks=[pytest.mark.slow, pytest.mark.needs(pyspark="Thrift knows SQL only")],
        ),
    ],
)
def test_seeds_snapshots_and_python_models_wait_for_their_tests_too(
    project: Project, kind: str
) -> None:
    project.write("tests/ids.sql", "select * from {{ ref('orders') }} where id < 0")
    for step in range(3):
        write_node(project, kind, step, publish="after_tests")
        assert project.dbt("build", "--exclude", "resource_type:test")
        before = published(project) if project.files() else set()

        assert project.dbt("test")

        assert published(project) != before
        project.assert_mirrored()
