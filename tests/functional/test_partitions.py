"""Partitions, whose values Spark keeps as texts in the names of folders."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project
from tests.functional.test_python_models import python_model

NEW_YORK = "America/New_York"
STORED_AS = ["parquet", "orc", "csv"]
# twice the same time on a clock in New York
NEW_ROWS = (
    "select {{ var('n') }} as id, timestamp'2024-11-03 0{{ 4 + var('n') }}:30:00Z' as at, "
    "cast('{{ var('n') }}' as string) as name"
)


def set_zone(project: Project, zone: str) -> None:
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
    project.write_project()


def times(project: Project) -> list[str]:
    """The times of the mirrored table, in UTC."""
    return sorted(dict(row)["at"].removeprefix("datetime ") for row in project.mirror())


def partitioned(project: Project, sql: str, stored_as: str = "", **config: Any) -> None:
    """Write a model that is partitioned by the column `at`."""
    if stored_as and project.file_format == "parquet":
        config["file_format"] = stored_as
    project.model(sql, partition_by="at", **config)


@pytest.mark.parametrize("stored_as", STORED_AS)
def test_a_local_time_that_becomes_an_instant_in_a_partition_is_compared(
    project: Project, stored_as: str
) -> None:
    set_zone(project, NEW_YORK)
    partitioned(project, "select 1 as id, timestamp_ntz'2024-01-01 10:00:00' as at", stored_as)
    project.run()
    assert times(project) == ["2024-01-01T10:00:00"]
    partitioned(project, "select 1 as id, timestamp'2024-01-01 10:00:00' as at", stored_as)

    project.run()

    assert times(project) == ["2024-01-01T15:00:00"]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("stored_as", STORED_AS)
@pytest.mark.parametrize("strategy", ["append", "merge", "insert_overwrite"])
def test_a_partition_is_the_same_time_in_every_zone_of_the_profile(
    project: Project, stored_as: str, strategy: str
) -> None:
    config: dict[str, Any] = {"materialized": "incremental", "incremental_strategy": strategy}
    if strategy == "merge":
        config["unique_key"] = ["id", "at"]
    day = "2024-11-03"
    new_rows = NEW_ROWS
    if project.file_format == "delta":  # it writes through texts in the zone of the session
        day = "2024-01-03"
        new_rows = NEW_ROWS.replace("2024-11-03", day)
    for number, zone in enumerate(("UTC", NEW_YORK, "Asia/Tokyo"), start=1):
        set_zone(project, zone)

        partitioned(project, new_rows, stored_as, **config)

        project.run("--vars", f"n: {number}")

        assert times(project) == [f"{day}T0{4 + n}:30:00" for n in range(1, number + 1)]
        project.assert_mirrored()


SETS_ZONE: dict[str, dict[str, Any]] = {
    "pre_hook": {"pre_hook": f"set time zone '{NEW_YORK}'"},
    "post_hook": {
        "post_hook": [
            f"set time zone '{NEW_YORK}'",
            "insert into {{ this }} values (2, timestamp'2024-01-02 00:00:00')",
        ]
    },
}


@pytest.mark.parametrize("materialized", ["table", "incremental"])
@pytest.mark.parametrize("place", [*SETS_ZONE, "sql_header"])
def test_code_of_the_user_may_set_the_zone_of_a_partition(
    project: Project, place: str, materialized: str
) -> None:
    sql = "select 1 as id, timestamp'2024-01-02 00:00:00' as at"
    if place == "sql_header":
        sql = f"{{% call set_sql_header(config) %}}set time zone '{NEW_YORK}';{{% endcall %}}{sql}"
    key = {"unique_key": "id"} if place != "post_hook" else {}
    partitioned(project, sql, materialized=materialized, **key, **SETS_ZONE.get(place, {}))
    for _ in range(2):
        project.run()

        zoned = "2024-01-02T05:00:00"
        expected = ["2024-01-02T00:00:00", zoned] if place == "post_hook" else [zoned]
        assert sorted(set(times(project))) == expected
        project.assert_mirrored()


@pytest.mark.pyspark("Python models need PySpark")
def test_a_python_model_may_set_the_zone_of_a_partition(project: Project) -> None:
    python_model(
        project,
        f"    session.conf.set('spark.sql.session.timeZone', '{NEW_YORK}')\n"
        "    return session.sql(\"select 1 as id, timestamp'2024-01-02 00:00:00' as at\")",
        partition_by="at",
    )

    project.run()

    assert times(project) == ["2024-01-02T05:00:00"]
    project.assert_mirrored()


@pytest.mark.parquet("only folders have a zone")
def test_another_zone_of_a_table_writes_its_partitions_again(project: Project) -> None:
    config: dict[str, Any] = {"materialized": "incremental", "unique_key": ["id", "at"]}
    for number, zone in enumerate((None, "Asia/Tokyo", NEW_YORK), start=1):
        options: dict[str, Any] = {"options": {"timezone": zone}} if zone else {}
        partitioned(project, NEW_ROWS.replace("11-03", "01-03"), **config, **options)

        project.run("--vars", f"n: {number}")

        assert times(project) == [f"2024-01-03T0{4 + n}:30:00" for n in range(1, number + 1)]
        project.assert_mirrored()


CREATES = (
    "drop table {{ this }}",
    "create table {{ this }} using parquet OPTIONS partitioned by (at) as "
    "select 1 as id, timestamp'2024-01-02 00:00:00' as at",
)


@pytest.mark.parquet("only folders have a zone")
def test_a_hook_that_creates_a_table_decides_on_the_zone_of_its_partitions(
    project: Project,
) -> None:
    sql = "select 1 as id, timestamp'2024-01-01 00:00:00' as at"
    hooks = [statement.replace("OPTIONS", "") for statement in CREATES]
    partitioned(project, sql, post_hook=hooks)

    message = project.fail()

    assert "`at`" in message
    assert "options (timeZone 'UTC')" in message
    assert not project.folder().exists()
    hooks = [statement.replace("OPTIONS", "options (timeZone 'UTC')") for statement in CREATES]
    partitioned(project, sql, post_hook=hooks)
    project.run()
    assert times(project) == ["2024-01-02T00:00:00"]
    project.assert_mirrored()


@pytest.mark.parquet("others find a name for any value")
def test_a_value_that_is_too_long_for_a_folder_is_an_error_that_says_so(project: Project) -> None:
    partitioned(project, "select 1 as id, repeat('x', 260) as at")

    assert "A value of a column in `partition_by` is too long" in project.fail()

    partitioned(project, "select 1 as id, left(repeat('x', 260), 200) as at")
    project.run()
    project.assert_mirrored()
