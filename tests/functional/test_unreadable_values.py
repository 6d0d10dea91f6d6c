"""Values that other readers cannot read are refused; what they can read lands as it is."""

from __future__ import annotations

import re
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

from tests.functional.project import Project
from tests.variants import some

# a name in Latin-1, as a binary value of a queue has it
TEXT = "cast(X'4DFC6E7A' as string)"
SHOWN = "X'4DFC6E7A'"
# a typing error, and Caesar's death
LATE, EARLY = "cast('20224-01-01' as date)", "date'-0044-03-15'"

YEARS = "before the year 1 or after 9999"

# a value that can be read, one that cannot, and what the message says about it
UNREADABLE: dict[str, tuple[str, str, str]] = {
    "text": ("'a'", TEXT, SHOWN),
    "text_cut_off": ("'\u20ac'", "cast(X'E282' as string)", "X'E282'"),
    "surrogates": ("'\U0001f600'", "cast(X'EDA0BDEDB880' as string)", "X'EDA0BDEDB880'"),
    "long_text": (
        "repeat('a', 30)",
        f"concat(repeat('a', 30), {TEXT})",
        f"X'{'61' * 20}...'",
    ),
    "char": ("cast('a' as char(5))", f"cast({TEXT} as char(5))", "X'4DFC6E7A"),
    "varchar": ("cast('a' as varchar(5))", f"cast({TEXT} as varchar(5))", SHOWN),
    "array": ("array('a', null)", f"array('a', null, {TEXT})", '["a",null,"M\ufffdnz"]'),
    "struct": (
        "named_struct('a b', 'a', 'n', 1)",
        f"named_struct('a b', {TEXT}, 'n', 1)",
        "M\ufffdnz",
    ),
    "map_key": ("map('a', 1)", f"map('a', 1, {TEXT}, 2)", "M\ufffdnz"),
    "map_value": ("map(1, 'a')", f"map(1, {TEXT})", "M\ufffdnz"),
    "deep": (
        "map('a', array(named_struct('b', map(named_struct('c', 'a'), 1))))",
        f"map('a', array(named_struct('b', map(named_struct('c', {TEXT}), 1))))",
        "M\ufffdnz",
    ),
    "late": ("date'9999-12-31'", LATE, "+20224-01-01"),
    "early": ("date'0001-01-01'", EARLY, "-0044-03-15"),
    "year_0": ("date'0001-01-01'", "date'0001-01-01' - 1", "0000-12-31"),
    "late_time": (
        "timestamp'9999-12-31 23:59:59.999999Z'",
        "timestamp_micros(253402300800000000)",
        "+10000-01-01 00:00:00Z",
    ),
    "early_time": (
        "timestamp'0001-01-02 00:00:00Z'",
        "timestamp_micros(-62135596800000001)",
        "0000-12-31 23:59:59.999999Z",
    ),
    "late_local_time": (
        "timestamp_ntz'9999-12-31 23:59:59.999999'",
        "timestamp_ntz'9999-12-31 23:59:59.999999' + interval '1' day",
        YEARS,
    ),
    "early_local_time": (
        "timestamp_ntz'0001-01-01 00:00:00'",
        "timestamp_ntz'0001-01-01 00:00:00' - interval '1' second",
        YEARS,
    ),
    "inner_date": ("array(date'9999-12-31')", f"array({LATE})", YEARS),
    "inner_time": (
        "named_struct('t', timestamp'9999-12-31 23:59:59.999999Z')",
        "named_struct('t', timestamp_micros(253402300800000000))",
        YEARS,
    ),
    "inner_key": ("map(date'0001-01-01', 1)", f"map({EARLY}, 1)", YEARS),
}
# only some versions of Spark and formats of tables have it
COLLATED = ("'a' collate UTF8_LCASE", f"{TEXT} collate UTF8_LCASE", SHOWN)

KEYED, KEYLESS = {"unique_key": "id"}, dict[str, str]()


def write(project: Project, column: int, config: dict[str, Any]) -> None:
    for name, values in UNREADABLE.items():
        project.model(f"select 1 as id, {values[column]} as v", name, **config)


def assert_refused(project: Project) -> None:
    results = project.results()
    for name, (_, _, shown) in UNREADABLE.items():
        message = results[name]["message"]
        assert "The column `v` has " in message, (name, message)
        assert shown in message, (name, message)
        assert "nothing was published" in message


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("config", some([KEYED, KEYLESS]), ids=["keyed", "keyless"])
@pytest.mark.core
def test_a_load_with_values_that_nobody_could_read_is_refused(
    project: Project, config: dict[str, str]
) -> None:
    write(project, 1, config)

    assert not project.dbt("run")

    assert_refused(project)
    assert not any(path.is_file() for path in project.landing_zone.rglob("*"))


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("config", some([KEYED, KEYLESS]), ids=["keyed", "keyless"])
def test_changes_with_values_that_nobody_could_read_are_refused(
    project: Project, config: dict[str, str]
) -> None:
    project.target["server_side_parameters"] = {
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.sql.ansi.enabled": "false",
    }
    project.write_project()
    write(project, 0, config)
    project.run()
    before = project.state("text")
    write(project, 1, config)

    for arguments in ((), ("--full-refresh",)):
        assert not project.dbt("run", *arguments)

        assert_refused(project)
        assert project.state("text") == before
    write(project, 0, config)
    project.run()
    assert {r["adapter_response"]["publication"] for r in project.results().values()} == {
        "unchanged"
    }
    for name in UNREADABLE:
        project.assert_mirrored(name)


def test_the_way_out_of_a_message_works(project: Project) -> None:
    plain = {
        name: value
        for name, (_, value, _) in UNREADABLE.items()
        if not value.startswith(("array(", "named_struct(", "map("))
    }
    for name, value in plain.items():
        project.model(f"select 1 as id, {value} as v", name, **KEYED)
    project.fail()
    for name, result in project.results().items():
        [way_out] = re.findall(r"in the model(?:: |, e\.g\. )(.*)\. Not", result["message"])
        query = f"select id, {way_out} as v from (select 1 as id, {plain[name]} as v)"
        project.model(query, name, **KEYED)

    project.run()

    for name in plain:
        project.assert_mirrored(name)
    assert dict(next(iter(project.mirror("text"))))["v"] == "str M\u00fcnz"


@pytest.mark.usefixtures("each_size")
def test_the_message_has_the_columns_and_a_few_keys(project: Project) -> None:
    project.model(
        f"select id, if(id % 2 = 0, {TEXT}, 'a') as name, if(id = 3, {LATE}, null) as day "
        "from range(1, 9)",
        unique_key="id",
    )

    message = project.fail()

    assert (
        f"The column `name` has text that is not UTF-8 in 4 rows, e.g. {SHOWN} (id=2); "
        f"{SHOWN} (id=4); {SHOWN} (id=6). "
    ) in message
    assert f"The column `day` has values {YEARS} in 1 row, e.g. +20224-01-01 (id=3)" in message


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("key", [TEXT, LATE, "timestamp_micros(-62135596800000001)"])
def test_a_key_that_nobody_could_read_is_refused(project: Project, key: str) -> None:
    project.model(f"select 1 as id, {key} as k", unique_key=["id", "k"])
    assert "The column `k` has " in project.fail()
    project.model("select 1 as id, 'a' as k", "orders", unique_key="id")
    project.run()
    before = project.state()
    project.model(f"select {key} as k union all select {key}", "orders", unique_key="k")

    message = project.fail()

    assert "The column `k` has " in message
    assert "in 2 rows" in message
    assert project.state() == before


@pytest.mark.usefixtures("each_size")
def test_new_rows_of_an_incremental_model_are_refused(project: Project) -> None:
    options = {"materialized": "incremental", "unique_key": "id"}
    project.model("select id, 'a' as name, date'2024-01-01' as day from range(20)", **options)
    project.run()
    before = project.state()
    for name, day in ((TEXT, "null"), ("'a'", LATE)):
        project.model(f"select 3L as id, {name} as name, cast({day} as date) as day", **options)

        message = project.fail()

        assert "(id=3)" in message
        assert project.state() == before
    project.model("select 3L as id, 'b' as name, date'0001-01-01' as day", **options)
    assert project.run()["rows_updated"] == 1
    project.assert_mirrored()


def test_appended_rows_are_refused(project: Project) -> None:
    options = {"materialized": "incremental", "incremental_strategy": "append"}
    project.model("select id, 'a' as name from range(20)", **options)
    project.run()
    before = project.state()
    project.model(f"select 20L as id, {TEXT} as name", **options)

    assert f"e.g. {SHOWN}. " in project.fail()

    assert project.state() == before
    project.model("select 20L as id, 'b' as name", **options)
    assert project.run()["rows_inserted"] == 1
    project.assert_mirrored()


def test_rows_to_hold_are_refused_by_the_node_that_builds_them(project: Project) -> None:
    options = {"unique_key": "id", "publish": "after_tests"}
    project.model("select 1 as id, 'a' as name", **options)
    project.run(command="build")
    before = project.state()
    project.model(f"select 1 as id, {TEXT} as name", **options)

    assert f"{SHOWN} (id=1)" in project.fail(command="build")

    assert project.state() == before
    with project.dry_run():
        assert f"{SHOWN} (id=1)" in project.fail()


def test_partitions_land_as_spark_stores_them(project: Project) -> None:
    """Spark itself replaces what is no text in the names of partitions' folders."""
    project.model(f"select 1 as id, {TEXT} as p", unique_key="id", partition_by=["p"])
    project.run()
    project.assert_mirrored()
    project.model(f"select 1 as id, {LATE} as p", "days", unique_key="id", partition_by=["p"])

    assert "+20224-01-01 (id=1)" in project.fail("--select", "days")


@pytest.mark.parquet("only some formats have collations")
@pytest.mark.skipif(pyspark.__version__ < "4", reason="has no collations")
def test_text_with_a_collation_is_refused(project: Project) -> None:
    for name, sql in (("keyed", KEYED), ("keyless", KEYLESS)):
        project.model(f"select 1 as id, {COLLATED[1]} as v", name, **sql)

    assert not project.dbt("run")

    for result in project.results().values():
        assert (
            f"The column `v` has text that is not UTF-8 in 1 row, e.g. {SHOWN}"
            in (result["message"])
        )


def test_many_unreadable_columns_are_reported_in_short(project: Project) -> None:
    columns = ", ".join(f"{TEXT} as c{i}" for i in range(300))
    project.model(f"select 1 as id, {columns}", unique_key="id")

    message = project.fail()

    assert "The same holds for 295 more." in message
    assert len(message) < 2000


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("config", some([KEYED, KEYLESS]), ids=["keyed", "keyless"])
def test_everything_that_is_text_or_in_these_years_lands(
    project: Project, config: dict[str, str]
) -> None:
    texts = ["", "\u0000", "a\u0000b", "\u007f", "\u0080", "\u07ff", "\u0800", "\uffff"]
    texts += ["\ufffd", "\ufeff", "\U00010000", "\U0001f600", "\U0010ffff", "e\u0301"]
    literals = ", ".join(f"decode(X'{text.encode().hex()}', 'UTF-8')" for text in texts)
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    project.write_project()
    for step in (0, 1):
        project.model(
            f"select id, array({literals}, null)[(id + {step}) % {len(texts) + 1}] as name, "
            "if(id % 2 = 0, date'0001-01-01', date'9999-12-31') as day, "
            "if(id % 2 = 0, timestamp'0001-01-02 00:00:00Z', "
            "timestamp'9999-12-31 23:59:59.999999Z') as at, "
            "if(id % 2 = 0, timestamp_ntz'0001-01-01 00:00:00', "
            "timestamp_ntz'9999-12-31 23:59:59.999999') as here, "
            f"named_struct('b', X'FFFE', 's', if(id = 1, null, array({literals}, null))) as n, "
            "cast(null as string) as nothing, X'FF' as bytes "
            f"from range({len(texts) + 1})",
            **config,
        )
        project.run()
        project.assert_mirrored()


@pytest.mark.parametrize("config", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_the_first_instant_lands(project: Project, config: dict[str, str]) -> None:
    """Python's own times begin a day later."""
    first = "timestamp_micros(-62135596800000000)"
    for day in (first, "timestamp_micros(0)"):
        project.model(f"select 1 as id, {day} as at", **config)
        project.run()
        if day == first:
            [file] = project.files()
            assert pq.read_table(file)["at"].cast("int64").to_pylist() == [-62135596800000000]
