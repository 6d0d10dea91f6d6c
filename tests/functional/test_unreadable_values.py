"""Values that other readers cannot read are refused; what they can read lands as it is."""

from __future__ import annotations

import re
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project
from tests.functional.typed_tables import PLACES
from tests.variants import some

# a name in Latin-1, as a binary value of a queue has it
TEXT = "cast(X'4DFC6E7A' as string)"
SHOWN = "X'4DFC6E7A'"
# a typing error, and Caesar's death
LATE, EARLY = "cast('20224-01-01' as date)", "date'-0044-03-15'"
YEARS = "before the year 1 or after 9999"

# values that cannot be read, and what the message says about them
UNREADABLE = {
    "text": (TEXT, SHOWN),
    "text_cut_off": ("cast(X'E282' as string)", "X'E282'"),
    "surrogates": ("cast(X'EDA0BDEDB880' as string)", "X'EDA0BDEDB880'"),
    "long_text": (f"concat(repeat('a', 30), {TEXT})", f"X'{'61' * 20}...'"),
    "char": (f"cast({TEXT} as char(5))", "X'4DFC6E7A"),
    "collated": (f"{TEXT} collate UTF8_LCASE", SHOWN),
    "late": (LATE, "+20224-01-01"),
    "early": (EARLY, "-0044-03-15"),
    "late_time": ("timestamp_micros(253402300800000000)", "+10000-01-01 00:00:00Z"),
    "early_time": ("timestamp_micros(-62135596800000001)", "0000-12-31 23:59:59.999999Z"),
    "late_local": ("timestamp_ntz'9999-12-31 23:59:59.999999' + interval '1' day", YEARS),
    "early_local": ("timestamp_ntz'0001-01-01 00:00:00' - interval '1' second", YEARS),
}
PLAIN = list(UNREADABLE)
# inside of other values
for place, inside in PLACES.items():
    if place != "column":
        UNREADABLE[f"text_{place}"] = (inside.format(TEXT), "M\ufffdnz")
UNREADABLE["late_array"] = (PLACES["array"].format(LATE), YEARS)
# also in the first run of a table
FIRST = ("text", "late", "late_local", "text_array")

KEYED, KEYLESS = {"unique_key": "id"}, dict[str, str]()


def messages(project: Project) -> dict[str, str]:
    return {name: result["message"] for name, result in project.results().items()}


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("config", some([KEYED, KEYLESS]), ids=["keyed", "keyless"])
def test_values_that_nobody_could_read_are_refused_with_a_way_out_that_works(
    project: Project, config: dict[str, str]
) -> None:
    """On the first run, and after one with NULL in their places."""
    project.target["server_side_parameters"] = {
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.sql.ansi.enabled": "false",
    }
    project.write_project()
    kinds = dict(UNREADABLE)
    if project.file_format != "parquet":
        del kinds["collated"]
    before: Any = {}
    for refused in (FIRST, kinds):
        for name in refused:
            project.model(f"select 1 as id, {kinds[name][0]} as v", name, **config)

        assert not project.dbt("run")

        found = messages(project)
        for name in refused:
            for part in ("The column `v` has ", kinds[name][1], "nothing was published"):
                assert part in found[name], (name, found[name])
        assert project.state_of_zone() == before
        if refused is FIRST:
            for name, (value, _) in kinds.items():
                nothing = f"if(rand() < 2, null, {value})"
                project.model(f"select 1 as id, {nothing} as v", name, **config)
            project.run()
            before = project.state_of_zone()
    for name in kinds:
        project.assert_mirrored(name)
    plain = [name for name in PLAIN if name in kinds]
    for name in plain:
        [way_out] = re.findall(r"in the model(?:: |, e\.g\. )(.*)\. Not", found[name])
        query = f"select id, {way_out} as v from (select 1 as id, {kinds[name][0]} as v)"
        project.model(query, name, **config)
    project.run("--select", *plain)
    for name in plain:
        project.assert_mirrored(name)
    assert dict(next(iter(project.mirror("text"))))["v"] == "str M\u00fcnz"


@pytest.mark.usefixtures("each_size")
@pytest.mark.core
def test_the_message_has_the_columns_and_a_few_keys(project: Project) -> None:
    project.model(
        f"select id, if(id % 2 = 0, {TEXT}, 'a') as name, if(id = 3, {LATE}, null) as day "
        "from range(1, 9)",
        unique_key="id",
    )
    many = ", ".join(f"{TEXT} as c{i}" for i in range(300))
    project.model(f"select 1 as id, {many}", "many", unique_key="id")

    project.fail()

    message = messages(project)["orders"]
    assert (
        f"The column `name` has text that is not UTF-8 in 4 rows, e.g. {SHOWN} (id=2); "
        f"{SHOWN} (id=4); {SHOWN} (id=6). "
    ) in message
    assert f"The column `day` has values {YEARS} in 1 row, e.g. +20224-01-01 (id=3)" in message
    message = messages(project)["many"]
    assert "The same holds for 295 more." in message
    assert len(message) < 2000


@pytest.mark.usefixtures("each_size")
def test_keys_that_nobody_could_read_are_refused(project: Project) -> None:
    keys = {"text": TEXT, "day": LATE, "instant": "timestamp_micros(-62135596800000001)"}
    for name in keys:
        project.model("select 1 as id, 'a' as k", name, unique_key="id")
    project.run()
    before = project.state_of_zone()
    for name, key in keys.items():
        project.model(f"select {key} as k union all select {key}", name, unique_key="k")
        project.model(f"select 1 as id, {key} as k", f"one_{name}", unique_key=["id", "k"])

    project.fail()

    assert project.state_of_zone() == before
    for name, message in messages(project).items():
        assert "The column `k` has " in message
        assert ("in 1 row" if name.startswith("one") else "in 2 rows") in message
    for name in keys:
        project.assert_mirrored(name)


# what a node does with new rows
NODES: dict[str, dict[str, Any]] = {
    "merged": {"materialized": "incremental", "unique_key": "id"},
    "appended": {"materialized": "incremental", "incremental_strategy": "append"},
    "held": {"unique_key": "id", "publish": "after_tests"},
}


@pytest.mark.usefixtures("each_size")
def test_new_rows_that_nobody_could_read_are_refused_by_each_kind_of_node(
    project: Project,
) -> None:
    query = "select {} as id, {} as name, cast({} as date) as day".format
    for name, config in NODES.items():
        project.model(query(1, "'a'", "date'2024-01-01'"), name, **config)
    project.run(command="build")
    before = {name: project.state(name) for name in NODES}
    for name, config in NODES.items():
        project.model(query(3, TEXT, LATE), name, **config)

    project.fail(command="build")

    for name in NODES:
        where = "" if name == "appended" else " (id=3)"
        for shown in (SHOWN, "+20224-01-01"):
            assert f"e.g. {shown}{where}. " in messages(project)[name]
        assert project.state(name) == before[name]
    with project.dry_run():
        project.fail()
    assert " (id=3). " in messages(project)["held"]
    for name, config in NODES.items():
        project.model(query(3, "'b'", "date'0001-01-01'"), name, **config)
    project.run(command="build")
    for name in NODES:
        project.assert_mirrored(name)


def test_partitions_land_as_spark_stores_them(project: Project) -> None:
    """Spark itself replaces what is no text in the names of partitions' folders."""
    project.model(f"select 1 as id, {TEXT} as p", unique_key="id", partition_by=["p"])
    project.run()
    project.assert_mirrored()


@pytest.mark.needs(session="Hive's metastore itself refuses to look for partitions of such days")
def test_partitions_of_late_days_are_told(project: Project) -> None:
    project.model(f"select 1 as id, {LATE} as p", unique_key="id", partition_by=["p"])

    assert "+20224-01-01 (id=1)" in project.fail()


def test_the_first_instant_lands(project: Project) -> None:
    """Python's own times begin a day later."""
    for name, config in (("keyed", KEYED), ("keyless", KEYLESS)):
        project.model("select timestamp_micros(-62135596800000000) as id", name, **config)

    project.run()

    for name in ("keyed", "keyless"):
        [file] = project.files(name)
        assert pq.read_table(file)["id"].cast("int64").to_pylist() == [-62135596800000000]
        project.model("select timestamp_micros(0) as id", name)
    project.run()
