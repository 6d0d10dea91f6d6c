"""Unusual tables, keys and settings: the mirror equals the model all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Entry
from tests.functional.project import Project
from tests.functional.test_incremental import incremental, rows, values

STRATEGIES = {"merged": "merge", "replaced": "delete+insert", "appended": "append"}


def settings(project: Project, **values: str) -> None:
    project.target["server_side_parameters"] = values
    project.write_project()


def sorted_rows(project: Project, name: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in project.sql(f"select * from {project.schema}.{name} order by all")]


# Spark and dbt do not share a disk


Patch = Callable[[pytest.MonkeyPatch, Path], None]


def write_elsewhere(patched: pytest.MonkeyPatch, folder: Path) -> None:
    patched.setattr(LocalStorage, "url", lambda self, path: f"file://{folder}/{path}")


def keep_a_part(patched: pytest.MonkeyPatch, _: Path) -> None:
    collect = LocalStorage.collect

    def collect_a_part(self: LocalStorage, folder: str) -> list[Entry]:
        found = [entry for entry in collect(self, folder) if entry.name.startswith("part")]
        assert len(found) > 1
        return found[1:]

    patched.setattr(LocalStorage, "collect", collect_a_part)


@pytest.mark.needs(local="the landing zone is in a folder")
@pytest.mark.parametrize(
    ("change", "told"),
    [(write_elsewhere, "do not share this folder"), (keep_a_part, "were planned")],
    ids=["elsewhere", "part"],
)
def test_files_that_do_not_arrive_are_missed(
    project: Project, change: Patch, told: str, tmp_path: Path
) -> None:
    configs: dict[str, dict[str, str]] = {"keyed": {"unique_key": "id"}, "keyless": {}}
    for offset, count in ((0, 100), (1, 120)):
        text = f"sha2(cast(id + {offset} as string), 512)"
        for name, config in configs.items():
            sql = f"select id, {text} as name from range({count})"
            project.model(sql, name, target_file_size="1kb", **config)
        with pytest.MonkeyPatch.context() as patched:
            change(patched, tmp_path / "disk of Spark")

            project.fail()

        for name in configs:
            assert told in project.results()[name]["message"]
            assert project.folder(name).exists() == (count > 100)
        project.run()
        for name in configs:
            project.assert_mirrored(name)


# Keys


# keys before and after, and what is published
CHANGED_KEYS = {
    "instants": (
        "cast('2024-01-01 10:00:00' as timestamp_ntz)",
        "cast('2024-01-01 10:00:00' as timestamp)",
    ),
    "zeros": ("0.0D", "-0.0D"),
    "collated": ("'alice' collate UTF8_LCASE", "'alice'"),
    "equal": ("'alice' collate UTF8_LCASE", "'Alice' collate UTF8_LCASE"),
}


@pytest.mark.usefixtures("each_size")
def test_keys_that_change_their_type_are_compared_as_they_land(project: Project) -> None:
    settings(project, **{"spark.sql.session.timeZone": "America/New_York"})
    pairs = dict(CHANGED_KEYS)
    if project.file_format != "parquet":
        del pairs["collated"], pairs["equal"]
    for n in (0, 1, 0):
        for name, keys in pairs.items():
            project.model(f"select {keys[n]} as id, {n} as n", name, unique_key="id")

        project.run()

        for name in pairs:
            project.assert_mirrored(name)
        if n and "collated" in pairs:
            assert project.results()["collated"]["adapter_response"]["rows_updated"] == 1


# New rows take the types of the snapshot before they are matched


# keys of a stored row and of a new one, which are the same key
SAME_KEYS = {
    "day": ("date'2024-01-01'", "timestamp'2024-01-01 00:00:00'"),
    "decimal": ("1.50BD", "1.500BD"),
    "int": ("1", "1.0D"),
}


@pytest.mark.usefixtures("each_size")
def test_new_rows_are_matched_in_the_types_of_the_snapshot(project: Project) -> None:
    names = []
    for strategy in ("merged", "replaced"):
        config = {"unique_key": "k", "incremental_strategy": STRATEGIES[strategy]}
        for kind, keys in SAME_KEYS.items():
            names.append(f"{strategy}_{kind}")
            old, new = (f"select {key} as k, {n} as n" for n, key in enumerate(keys))
            incremental(project, old, new, names[-1], **config)
    later = "select '1' as k, 1 as n union all select ' 1', 2"
    incremental(project, "select 1 as k, 0 as n", later, "refused", unique_key="k")
    project.run()
    before = project.state("refused")[1]

    message = project.fail()

    assert "Several new rows have the same key" in message
    assert project.relation("refused") == before
    for name in names:
        response = project.results()[name]["adapter_response"]
        assert (response["rows_inserted"], response["rows_updated"]) == (0, 1)
        assert [row[1] for row in sorted_rows(project, name)] == [1]
        project.assert_mirrored(name)


# Rows are published as they are stored


@pytest.mark.usefixtures("each_size")
@pytest.mark.needs(parquet="partitions of other formats keep an empty string")
def test_an_empty_string_that_a_partition_makes_null_is_null_in_the_mirror(
    project: Project,
) -> None:
    query = "select * from values {} as t(id, region)".format
    names = {**STRATEGIES, "overwritten": "insert_overwrite"}
    first, later = query("(1, 'a'), (2, 'b')"), query("(3, ''), (4, 'b')")
    partitioned = {"unique_key": "id", "partition_by": "region"}
    for name, strategy in names.items():
        incremental(project, first, later, name, **partitioned, incremental_strategy=strategy)
    keys = {**partitioned, "unique_key": ["id", "region"]}
    incremental(project, query("(1, 'a')"), query("(1, '')"), "keys", **keys)
    project.run()

    assert "NULL or not unique" in project.fail()

    for name in names:
        assert (3, None) in [tuple(row) for row in sorted_rows(project, name)]
        project.assert_mirrored(name)


@pytest.mark.usefixtures("each_size")
@pytest.mark.needs(parquet="sets the format itself")
def test_values_that_a_format_changes_are_published_as_they_are_stored(project: Project) -> None:
    formats = ("csv", "json", "orc")
    for name in formats:
        first, later = values("(1, 'a')", "(2, 'b')"), values("(2, '')", "(3, null)")
        incremental(project, first, later, f"as_{name}", unique_key="id", file_format=name)
    for _ in range(2):
        project.run()

        for name in formats:
            project.assert_mirrored(f"as_{name}")


# Files are linked only into a table that is stored as theirs is


@pytest.mark.usefixtures("each_size")
@pytest.mark.needs(parquet="sets the format itself")
def test_a_table_that_gets_another_format_or_buckets_is_written_again(project: Project) -> None:
    first, later = values("(1, 'a')", "(2, 'b')"), values("(3, 'c')")
    models: dict[str, dict[str, Any]] = {
        "merged": {"unique_key": "id"},
        "appended": {"incremental_strategy": "append"},
        "buckets": {"unique_key": "id"},
    }
    for name, config in models.items():
        incremental(project, first, later, name, **config)
    project.run()
    settings(project, **{"spark.sql.sources.default": "orc"})
    incremental(project, first, later, "buckets", unique_key="id", clustered_by="id", buckets=2)

    project.run()
    project.run("--select", "buckets", "merged")

    for name in models:
        assert sorted_rows(project, name) == [(1, "a"), (2, "b"), (3, "c")]
        project.assert_mirrored(name)
    assert project.sql(f"select id from {project.schema}.buckets where id = 3") == [(3,)]


STORED: dict[str, tuple[dict[str, Any], str]] = {
    "format": ({"file_format": "orc"}, "orc"),
    "partitions": ({"partition_by": "name"}, "partitioned by name"),
    "buckets": ({"clustered_by": "id", "buckets": 2}, "in buckets 2"),
}


@pytest.mark.needs(parquet="sets the format itself")
def test_the_relation_follows_how_it_is_to_be_stored_and_nothing_is_published(
    project: Project,
) -> None:
    for name in STORED:
        project.model(values("(1, 'a')", "(2, 'b')"), name, unique_key="id")
    project.run()
    files = {name: [file.name for file in project.files(name)] for name in STORED}
    for name, (config, _) in STORED.items():
        project.model(values("(1, 'a')", "(2, 'b')"), name, unique_key="id", **config)

    project.run()

    for name, (_, told) in STORED.items():
        response = project.results()[name]["adapter_response"]
        assert response["publication"] == "unchanged"
        assert told in response["reason"]
        project.assert_mirrored(name)
        assert [file.name for file in project.files(name)] == files[name]
    project.run()
    assert not any(r["adapter_response"].get("reason") for r in project.results().values())


# Rows that are marked as deleted


def test_rows_that_are_marked_as_deleted_are_none_on_any_run(project: Project) -> None:
    columns = "id, gone"
    first = values("(1, false)", "(2, true)", "(3, null)", columns=columns)
    incremental(project, first, first, unique_key="id", delete_when="gone")

    for command in ((), (), ("--full-refresh",)):
        project.run(*command)

        assert [row[0] for row in rows(project)] == [1, 3]
        project.assert_mirrored()
