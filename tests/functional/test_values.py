"""Change sets are right for every value and every name."""

from __future__ import annotations

import json

import pytest

from tests.functional.project import Project
from tests.variants import some

# values before and after a change, as Spark SQL: each pair must be told apart
DIFFERENT = [
    ("cast(null as string)", "''"),
    ("cast(null as string)", "'null'"),
    ("''", "' '"),
    ("'a'", "'A'"),
    ("'a'", "'a '"),
    ("'\\u00e9'", "'e\\u0301'"),
    ("cast(null as int)", "0"),
    ("2147483647", "-2147483648"),
    ("cast(9007199254740992 as bigint)", "cast(9007199254740993 as bigint)"),
    ("cast(null as boolean)", "false"),
    ("0.0D", "-0.0D"),
    ("0.0F", "-0.0F"),
    ("double('NaN')", "cast(null as double)"),
    ("double('NaN')", "double('Infinity')"),
    ("1.0D", "1.0000000000000002D"),
    ("cast(1.00 as decimal(38, 2))", "cast(1.01 as decimal(38, 2))"),
    ("cast(1e37 as decimal(38, 0))", "cast(1e37 as decimal(38, 0)) + 1"),
    ("x''", "cast(null as binary)"),
    ("x'00'", "x'0000'"),
    ("date'1582-10-15'", "date'1582-10-04'"),
    ("date'0001-01-01'", "date'9999-12-31'"),
    ("timestamp'1969-12-31 23:59:59.999999Z'", "timestamp'1970-01-01 00:00:00Z'"),
    ("timestamp_ntz'2024-03-31 02:30:00'", "timestamp_ntz'2024-03-31 02:30:00.000001'"),
    ("array(1, null)", "array(1)"),
    ("array('')", "array(cast(null as string))"),
    ("map('a', 1)", "map('a', cast(null as int))"),
    ("named_struct('a', 1, 'b', null + 1)", "named_struct('a', null + 1, 'b', 1)"),
    (
        "named_struct('t', timestamp'2024-01-01 00:00:00.000001Z')",
        "named_struct('t', timestamp'2024-01-01 00:00:00.000002Z')",
    ),
    ("map(x'00', 1)", "map(x'01', 1)"),
    ("parse_json('{\"a\": 1}')", "parse_json('{\"a\": null}')"),
]


@pytest.mark.parametrize("config", some([{"unique_key": "id"}, {}]), ids=["keyed", "keyless"])
@pytest.mark.core
def test_every_changed_value_is_published_and_no_equal_one(
    project: Project, config: dict[str, str]
) -> None:
    """Row i has its i-th pair's value in column v<i>, and NULL in the others."""

    def rows(changed: bool) -> str:
        selects = []
        for i, pair in enumerate(DIFFERENT):
            for name, value in (("same", pair[0]), ("changed", pair[changed])):
                values = [
                    f"if({i == j}, {value if i == j else before}, null) as v{j}"
                    for j, (before, _) in enumerate(DIFFERENT)
                ]
                selects.append(f"select '{name} {i}' as id, {', '.join(values)}")
        return " union all ".join(selects)

    expected = ["initial", "unchanged", "changes" if config else "rebuild"]
    for step, publication in enumerate(expected):
        project.model(rows(changed=step == 2), **config)
        response = project.run()
        assert response["publication"] == publication
        project.assert_mirrored()
    if config:
        assert response["rows_updated"] == len(DIFFERENT)


def test_nulls_that_move_from_one_column_to_another_are_changes(project: Project) -> None:
    for sql in ("select 1 as id, null + 5 as a, 5 as b", "select 1 as id, 5 as a, null + 5 as b"):
        project.model(sql, unique_key="id")
        response = project.run()
        project.assert_mirrored()
    assert response["rows_updated"] == 1


@pytest.mark.core
def test_every_kind_of_column_name_is_published_and_changed(project: Project) -> None:
    names = [
        "with space",
        "with.dot",
        'with"quote',
        "with'apostrophe",
        "with`backtick",
        "ünïcödé 列",
        "select",
        "comma,semicolon;brace{}(paren)=",
        "100%",
        "back\\slash",
        "#hash",
        "d0",
        "k0",
        "c0",
        "n",
        "p",
        "marker",
        "position",
        "copy",
        "latest",
        "changed",
    ]
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    key = quoted[:2]
    for step in range(3):
        value = f"if(id = {step}, 'x', '')"
        columns = ", ".join(
            f"id as {name}" if name in key else f"concat(id, '{i}', {value}) as {name}"
            for i, name in enumerate(quoted)
        )
        project.model(f"select {columns} from range({3 + step})", unique_key=names[:2])
        response = project.run()
        project.assert_mirrored()
    assert (response["rows_inserted"], response["rows_updated"]) == (1, 2)


def test_column_names_survive_without_a_key(project: Project) -> None:
    for rows in (1, 3):
        project.model(
            f"select id as `d0`, id as `n`, id as `copy`, id as `a b` from range({rows})"
        )
        project.run()
        project.assert_mirrored()


@pytest.mark.parametrize(
    "key",
    some(
        [
            "cast(id as string)",
            "cast(timestamp_seconds(id) as timestamp_ntz)",
            "cast(cast(id as string) as binary)",
            "id",
            "cast(id as decimal(20, 3))",
            "cast(id as double)",
            "date_add(date'2024-01-01', cast(id as int))",
            "timestamp_seconds(id)",
            "id % 2 = 0",
        ],
        count=3,
    ),
)
@pytest.mark.core
def test_keys_of_every_type_name_rows(project: Project, key: str) -> None:
    for rows in ("id < 2", "id in (1, 2)", "id = 1"):
        project.model(
            f"select {key} as k, '{rows}' as v from range(3) where {rows}", unique_key="k"
        )
        project.run()
        project.assert_mirrored()


@pytest.mark.core
def test_composite_keys_of_mixed_types_name_rows(project: Project) -> None:
    key = "cast(id % 3 as string) as a, date_add(date'2024-01-01', cast(id % 2 as int)) as b"
    for rows, value in ((6, 0), (4, 1), (6, 1)):
        project.model(
            f"select {key}, cast(id % 2 as decimal(5, 1)) as c, {value} as v from range({rows})",
            unique_key=["a", "b", "c"],
        )
        project.run()
        project.assert_mirrored()


def test_a_key_may_be_spelled_in_another_case_than_the_column(project: Project) -> None:
    project.model("select 1 as Id, 'a' as name", unique_key="ID")
    project.run()
    assert '"Id"' in (project.folder() / "_metadata.json").read_text()
    project.model("select 1 as Id, 'b' as name", unique_key="ID")

    project.run()

    project.assert_mirrored()


def test_a_local_time_is_the_same_instant_in_every_time_zone(project: Project) -> None:
    """02:30 does not exist in Berlin on that day: a cast in that zone would move it."""
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": "Europe/Berlin"}
    project.write_project()
    project.model("select 1 as id, timestamp_ntz'2024-03-31 02:30:00' as t", unique_key="id")

    project.run()

    project.assert_mirrored()


def test_a_table_of_many_columns_is_published_and_changed(project: Project) -> None:
    for value in (0, 1):
        columns = ", ".join(
            f"cast(id + {value if i == 499 else 0} as int) as c{i}" for i in range(500)
        )
        project.model(f"select id, {columns} from range(20)", unique_key="id")
        response = project.run()
        project.assert_mirrored()
    assert response["rows_updated"] == 20


# keys as Spark SQL, and as JSON
KEYS = {
    "'a'": "a",
    "1": "1",
    "1.50BD": "1.50",
    "1.5D": "1.5",
    "true": "true",
    "date'2024-01-01'": "2024-01-01",
    "timestamp'2024-01-01 00:00:00.000001Z'": "2024-01-01T00:00:00.000001Z",
    "timestamp_ntz'2024-03-31 02:30:00'": "2024-03-31T02:30:00.000000",
    "x'fbff'": "+/8=",
    "named_struct('a b', date'2024-01-01', 'n', cast(null as int))": (
        '{"a b":"2024-01-01","n":null}'
    ),
    "array(timestamp'2024-01-01 00:00:00Z')": '["2024-01-01T00:00:00.000000Z"]',
    "interval '1-2' year to month": "INTERVAL '1-2' YEAR TO MONTH",
}


def test_json_does_not_depend_on_settings_of_times_and_strings(project: Project) -> None:
    project.target["server_side_parameters"] = {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    project.write_project()
    instant = "timestamp'2024-01-01 10:00:00.123456Z'"
    local = "timestamp_ntz'1500-01-01 10:00:00.5'"
    project.model(f"select map({instant}, named_struct('at', {instant}, 'here', {local})) as m")

    project.run()

    [row] = project.mirror()
    time = "2024-01-01T10:00:00.123456Z"
    value = {"at": time, "here": "1500-01-01T10:00:00.500000"}
    assert json.loads(dict(row)["m"].removeprefix("str ")) == {time: value}


def test_json_has_the_keys_of_maps_as_it_has_values(project: Project) -> None:
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": "Europe/Berlin"}
    project.write_project()
    columns = ", ".join(f"map({key}, 1) as k{i}" for i, key in enumerate(KEYS))
    project.model(f"select 1 as id, {columns}", unique_key="id")

    project.run()

    ((*values,),) = project.mirror()
    assert dict(values) == {
        "id": "int 1",
        **{f"k{i}": f"str {json_text({key: 1})}" for i, key in enumerate(KEYS.values())},
    }
    assert project.run()["publication"] == "unchanged"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("array(map({day}, {day}), null)", [{"2024-01-01": "2024-01-01"}, None]),
        (
            "named_struct('a`b', map({day}, 1), 'c:d,e', null + 1, \"f'g\", map('x', 1))",
            {"a`b": {"2024-01-01": 1}, "c:d,e": None, "f'g": {"x": 1}},
        ),
        (
            "map('a', map({day}, array(map({day}, null + 1))))",
            {"a": {"2024-01-01": [{"2024-01-01": None}]}},
        ),
        (
            "map(named_struct('d', array({day})), named_struct('m', map({day}, 1)))",
            {'{"d":["2024-01-01"]}': {"m": {"2024-01-01": 1}}},
        ),
        ("if(id < 0, map({day}, 1), null)", None),
        ("named_struct('s', if(id < 0, named_struct('m', map({day}, 1)), null))", {"s": None}),
    ],
)
def test_json_has_the_keys_of_maps_at_any_depth(
    project: Project, value: str, expected: object
) -> None:
    sql = value.format(day="date'2024-01-01'")
    for step in range(2):
        project.model(f"select id, {step} as step, {sql} as v from range(1)", unique_key="id")
        project.run()

    ((*values,),) = project.mirror()
    assert dict(values).get("v") == (f"str {json_text(expected)}" if expected else None)
    project.assert_mirrored()


def json_text(value: object) -> str:
    """As Spark writes it."""
    return json.dumps(value, separators=(",", ":"))
