"""Unusual tables, types and settings: the mirror equals the model all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Entry
from tests.functional.project import Project
from tests.functional.test_incremental import incremental, rows, values
from tests.variants import some

collations = pytest.mark.parquet("Delta and Iceberg have no collations here")


def settings(project: Project, **values: str) -> None:
    project.target["server_side_parameters"] = values
    project.write_project()


# Spark and dbt do not share a disk


@pytest.mark.local("the landing zone is in a folder")
@pytest.mark.parametrize("config", some([{"unique_key": "id"}, {}]), ids=["keyed", "keyless"])
def test_files_that_spark_has_written_to_a_disk_of_its_own_are_missed(
    project: Project, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.model("select id, 'a' as name from range(100)", **config)
    elsewhere = tmp_path / "disk of Spark"
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "url", lambda self, path: f"file://{elsewhere}/{path}")

        assert "do not share this folder" in project.fail()

    assert not project.folder().exists()
    assert project.run()["_message"].startswith("initial +100")
    project.model("select id, 'b' as name from range(101)", **config)
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "url", lambda self, path: f"file://{elsewhere}/{path}")

        assert "do not share this folder" in project.fail()

    project.run()
    project.assert_mirrored()


@pytest.mark.local("the landing zone is in a folder")
def test_a_part_that_an_executor_has_kept_is_missed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_files = {"unique_key": "id", "target_file_size": "1kb"}
    texts = "sha2(cast(id as string), 512) as name"
    project.model(f"select id, {texts} from range(100)", **many_files)
    collect = LocalStorage.collect

    def collect_a_part(self: LocalStorage, folder: str) -> list[Entry]:
        found = [entry for entry in collect(self, folder) if entry.name.startswith("part")]
        assert len(found) > 1
        return found[1:]

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "collect", collect_a_part)

        assert "100 rows were planned" in project.fail()

    project.run()
    project.model(f"select id, upper({texts[:-8]}) as name from range(1, 120)", **many_files)
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "collect", collect_a_part)

        assert "were planned" in project.fail()

    project.run()
    project.assert_mirrored()


# Keys


@collations
@pytest.mark.usefixtures("each_size")
@pytest.mark.core
def test_keys_that_spark_takes_for_equal_are_different_ones_in_the_mirror(
    project: Project,
) -> None:
    for names in ("'alice', 'bob'", "'Alice', 'BOB'", "'Alice', 'alice', 'BOB'"):
        project.model(
            "select name collate UTF8_LCASE as name, 1 as n "
            f"from (select explode(array({names})) as name)",
            unique_key="name",
        )
        project.run()
        project.assert_mirrored()


@collations
def test_a_key_that_loses_its_collation_names_the_same_rows(project: Project) -> None:
    name = "select explode(array('alice', 'bob')) as name"
    project.model(f"select name collate UTF8_LCASE as name from ({name})", unique_key="name")
    project.run()
    project.model(f"select name, 1 as n from ({name})", unique_key="name")

    assert project.run()["publication"] == "changes"
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
def test_a_local_time_that_becomes_an_instant_is_compared_as_it_lands(project: Project) -> None:
    settings(project, **{"spark.sql.session.timeZone": "America/New_York"})
    at = "timestamp_ntz'2024-01-01 10:00:00'"
    project.model(f"select {at} as at, 1 as n", unique_key="at")
    project.run()
    project.model(f"select cast({at} as timestamp) as at, 1 as n", unique_key="at")
    project.run()
    project.assert_mirrored()
    project.model(f"select {at} as at, 2 as n", unique_key="at")
    project.run()
    project.assert_mirrored()


def test_a_key_that_becomes_a_negative_zero_is_published(project: Project) -> None:
    for zero in ("0.0D", "-0.0D"):
        project.model(f"select {zero} as id, 1 as n", unique_key="id")
        project.run()
        project.assert_mirrored()


# New rows take the types of the snapshot before they are matched


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("strategy", some(["merge", "delete+insert"]))
@pytest.mark.parametrize(
    ("key", "later"),
    some(
        [
            ("date'2024-01-01'", "timestamp'2024-01-01 00:00:00'"),
            ("1.50BD", "1.500BD"),
            ("1", "1.0D"),
        ]
    ),
    ids=["date", "decimal", "int"],
)
def test_new_rows_are_matched_in_the_types_of_the_snapshot(
    project: Project, key: str, later: str, strategy: str
) -> None:
    incremental(
        project,
        f"select {key} as k, 'old' as name",
        f"select {later} as k, 'new' as name",
        unique_key="k",
        incremental_strategy=strategy,
    )
    project.run()

    response = project.run()

    assert (response["rows_inserted"], response["rows_updated"]) == (0, 1)
    assert [row[1] for row in rows(project)] == ["new"]
    project.assert_mirrored()


def test_new_rows_that_have_the_same_key_in_the_types_of_the_snapshot_are_refused(
    project: Project,
) -> None:
    later = "select '1' as k, 'x' as name union all select ' 1', 'y'"
    first = "select 1 as k, 'old' as name"
    incremental(project, first, later, unique_key="k")
    project.run()
    before = project.state()

    assert "Several new rows have the same key" in project.fail()

    assert project.state() == before


# Rows are published as they are stored


@pytest.mark.usefixtures("each_size")
@pytest.mark.parquet("partitions of other formats keep an empty string")
@pytest.mark.parametrize(
    "strategy", some(["merge", "insert_overwrite", "delete+insert", "append"])
)
@pytest.mark.core
def test_an_empty_string_that_a_partition_makes_null_is_null_in_the_mirror(
    project: Project, strategy: str
) -> None:
    columns = "id, region"
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')", columns=columns),
        values("(3, '')", "(4, 'b')", columns=columns),
        unique_key="id",
        partition_by="region",
        incremental_strategy=strategy,
    )
    project.run()

    project.run()

    assert (3, None) in rows(project)
    project.assert_mirrored()


@pytest.mark.parquet("partitions of other formats keep an empty string")
def test_a_key_that_a_partition_makes_null_is_refused(project: Project) -> None:
    project.take_tables_for_large()
    columns = "id, region"
    incremental(
        project,
        values("(1, 'a')", columns=columns),
        values("(1, '')", columns=columns),
        unique_key=["id", "region"],
        partition_by="region",
    )
    project.run()

    assert "NULL or not unique" in project.fail()


@pytest.mark.usefixtures("each_size")
@pytest.mark.parquet("sets the format itself")
@pytest.mark.parametrize("stored_as", some(["csv", "json", "orc"]))
def test_values_that_a_format_changes_are_published_as_they_are_stored(
    project: Project, stored_as: str
) -> None:
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')"),
        values("(2, '')", "(3, null)"),
        unique_key="id",
        file_format=stored_as,
    )
    project.run()
    project.assert_mirrored()

    project.run()
    project.assert_mirrored()


# Files are linked only into a table that is stored as theirs is


@pytest.mark.usefixtures("each_size")
@pytest.mark.parquet("sets the format itself")
@pytest.mark.parametrize("strategy", some(["merge", "append"]))
def test_a_new_default_format_replaces_the_files_of_the_old_one(
    project: Project, strategy: str
) -> None:
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')"),
        values("(3, 'c')"),
        unique_key="id",
        incremental_strategy=strategy,
    )
    project.run()
    settings(project, **{"spark.sql.sources.default": "orc"})

    project.run()

    assert rows(project) == [(1, "a"), (2, "b"), (3, "c")]
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
@pytest.mark.parquet("other formats have no buckets")
def test_a_table_that_gets_buckets_is_written_again(project: Project) -> None:
    config: dict[str, Any] = {"unique_key": "id"}
    incremental(project, values("(1, 'a')", "(2, 'b')"), values("(3, 'c')"), **config)
    project.run()
    config |= {"clustered_by": "id", "buckets": 2}
    incremental(project, "", values("(3, 'c')"), **config)

    project.run()
    project.run()

    assert rows(project) == [(1, "a"), (2, "b"), (3, "c")]
    assert project.sql(f"select id from {project.schema}.orders where id = 3") == [(3,)]
    project.assert_mirrored()


@pytest.mark.parquet("sets the format itself")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"file_format": "orc"}, "orc"),
        ({"partition_by": "name"}, "partitioned by name"),
        ({"clustered_by": "id", "buckets": 2}, "in buckets 2"),
    ],
)
def test_the_relation_follows_how_it_is_to_be_stored_and_nothing_is_published(
    project: Project, config: dict[str, Any], told: str
) -> None:
    project.model(values("(1, 'a')", "(2, 'b')"), unique_key="id")
    project.run()
    files = [file.name for file in project.files()]
    project.model(values("(1, 'a')", "(2, 'b')"), unique_key="id", **config)

    response = project.run()

    assert response["publication"] == "unchanged"
    assert told in response["reason"]
    assert [file.name for file in project.files()] == files
    assert not project.run().get("reason")
    project.assert_mirrored()


# Rows that are marked as deleted


@pytest.mark.parametrize("command", [(), ("--full-refresh",)], ids=["first", "full refresh"])
def test_rows_that_are_marked_as_deleted_are_none_on_any_run(
    project: Project, command: tuple[str, ...]
) -> None:
    columns = "id, gone"
    first = values("(1, false)", "(2, true)", "(3, null)", columns=columns)
    incremental(project, first, first, unique_key="id", delete_when="gone")

    for _ in range(2):
        project.run(*command)

        assert [row[0] for row in rows(project)] == [1, 3]
        project.assert_mirrored()
