"""Partitions, whose values Spark keeps as texts in the names of folders."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project
from tests.functional.test_python_models import python_model

NEW_YORK = "America/New_York"
# twice the same time on a clock in New York
NEW_ROWS = (
    "select {{ var('n') }} as id, timestamp'2024-11-03 0{{ 4 + var('n') }}:30:00Z' as at, "
    "cast('{{ var('n') }}' as string) as name"
)
MIDNIGHT = "select 1 as id, timestamp'2024-01-02 00:00:00' as at"


def set_zone(project: Project, zone: str) -> None:
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
    project.write_project()


def times(project: Project, name: str = "orders") -> list[str]:
    """The times of the mirrored table, in UTC."""
    return sorted(
        dict(row)["at"].removeprefix("datetime ") for row in project.mirror(name).elements()
    )


def formats(project: Project) -> dict[str, dict[str, str]]:
    """The formats of tables to test, and the configuration for each."""
    if project.file_format != "parquet":
        return {project.file_format: {}}
    return {name: {"file_format": name} for name in ("parquet", "csv")}


def test_a_local_time_that_becomes_an_instant_in_a_partition_is_compared(project: Project) -> None:
    set_zone(project, NEW_YORK)
    for type_, hour in (("timestamp_ntz", 10), ("timestamp", 15)):
        sql = f"select 1 as id, {type_}'2024-01-01 10:00:00' as at"
        for name, config in formats(project).items():
            project.model(sql, f"as_{name}", partition_by="at", **config)

        project.run()

        for name in formats(project):
            assert times(project, f"as_{name}") == [f"2024-01-01T{hour}:00:00"]
            project.assert_mirrored(f"as_{name}")
    assert project.run()["publication"] == "unchanged"


@pytest.mark.usefixtures("each_size")
def test_a_partition_is_the_same_time_in_every_zone_of_the_profile(project: Project) -> None:
    day = "2024-11-03"
    if project.file_format == "delta":  # it writes through texts in the zone of the session
        day = "2024-01-03"
    models: dict[str, dict[str, Any]] = {
        f"merge_{name}": {"incremental_strategy": "merge", "unique_key": ["id", "at"], **config}
        for name, config in formats(project).items()
    }
    for strategy in ("append", "insert_overwrite"):
        models[strategy] = {"incremental_strategy": strategy}
    for name, config in models.items():
        sql = NEW_ROWS.replace("2024-11-03", day)
        project.model(sql, name, materialized="incremental", partition_by="at", **config)
    for number, zone in enumerate(("UTC", NEW_YORK, "Asia/Tokyo"), start=1):
        set_zone(project, zone)

        project.run("--vars", f"n: {number}")

        expected = [f"{day}T0{4 + n}:30:00" for n in range(1, number + 1)]
        for name in models:
            assert times(project, name) == expected, name
            project.assert_mirrored(name)


SETS_ZONE: dict[str, dict[str, Any]] = {
    "sql_header": {"unique_key": "id"},
    "pre_hook": {"unique_key": "id", "pre_hook": f"set time zone '{NEW_YORK}'"},
    "post_hook": {
        "post_hook": [
            f"set time zone '{NEW_YORK}'",
            "insert into {{ this }} values (2, timestamp'2024-01-02 00:00:00')",
        ]
    },
}


def test_code_of_the_user_may_set_the_zone_of_a_partition(project: Project) -> None:
    zoned = "2024-01-02T05:00:00"
    header = f"{{% call set_sql_header(config) %}}set time zone '{NEW_YORK}';{{% endcall %}}"
    for kind in ("table", "incremental"):
        for name, config in SETS_ZONE.items():
            sql = f"{header if name == 'sql_header' else ''}{MIDNIGHT}"
            options = {"materialized": kind, "partition_by": "at", **config}
            project.model(sql, f"{kind}_{name}", **options)
    for _ in range(2):
        project.run()

        for name in project.results():
            found = {"2024-01-02T00:00:00", zoned} if name.endswith("post_hook") else {zoned}
            assert set(times(project, name)) == found, name
            project.assert_mirrored(name)


@pytest.mark.needs(pyspark="Python models need PySpark")
def test_a_python_model_may_set_the_zone_of_a_partition(project: Project) -> None:
    python_model(
        project,
        f"    session.conf.set('spark.sql.session.timeZone', '{NEW_YORK}')\n"
        f'    return session.sql("{MIDNIGHT}")',
        partition_by="at",
    )

    project.run()

    assert times(project) == ["2024-01-02T05:00:00"]
    project.assert_mirrored()


@pytest.mark.needs(parquet="only folders have a zone")
def test_another_zone_of_a_table_writes_its_partitions_again(project: Project) -> None:
    config: dict[str, Any] = {"materialized": "incremental", "unique_key": ["id", "at"]}
    for number, zone in enumerate((None, "Asia/Tokyo", NEW_YORK), start=1):
        options: dict[str, Any] = {"options": {"timezone": zone}} if zone else {}
        sql = NEW_ROWS.replace("11-03", "01-03")
        project.model(sql, partition_by="at", **config, **options)

        project.run("--vars", f"n: {number}")

        assert times(project) == [f"2024-01-03T0{4 + n}:30:00" for n in range(1, number + 1)]
        project.assert_mirrored()


@pytest.mark.needs(parquet="only folders have a zone")
def test_a_hook_that_creates_a_table_decides_on_the_zone_of_its_partitions(
    project: Project,
) -> None:
    def write(options: str) -> None:
        create = f"create table {{{{ this }}}} using parquet {options} partitioned by (at) as "
        hooks = ["drop table {{ this }}", create + MIDNIGHT]
        sql = "select 1 as id, timestamp'2024-01-01 00:00:00' as at"
        project.model(sql, partition_by="at", post_hook=hooks)

    write("")

    message = project.fail()

    assert "`at`" in message
    assert "options (timeZone 'UTC')" in message
    assert not project.folder().exists()
    write("options (timeZone 'UTC')")
    project.run()
    assert times(project) == ["2024-01-02T00:00:00"]
    project.assert_mirrored()


@pytest.mark.needs(parquet="others find a name for any value")
def test_a_value_that_is_too_long_for_a_folder_is_an_error_that_says_so(project: Project) -> None:
    project.model("select 1 as id, repeat('x', 260) as at", partition_by="at")

    assert "A value of a column in `partition_by` is too long" in project.fail()

    project.model("select 1 as id, repeat('x', 200) as at", partition_by="at")
    project.run()
    project.assert_mirrored()
