"""The SQL of values whose maps have keys that JSON can tell."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.types.columns import json_text, json_value, with_keys_as_text

TIME = "'yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'"
OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    f"'timestampFormat', concat({TIME}, 'XXX'), 'timestampNTZFormat', concat({TIME}))"
)


def entries(value: str, entry: str, key: str, item: str) -> str:
    return (
        f"map_from_entries(transform(map_entries({value}), "
        f"{entry} -> struct({key} as key, {item} as value)))"
    )


def text(key: str) -> str:
    return f"trim(both '[\"]' from to_json(array({key}), {OPTIONS}))"


@pytest.mark.parametrize(
    "dtype",
    [
        "array<date>",
        "variant",
        "struct<a b:int,c:decimal(10,2)>",
        "map<string,date>",
        "map<string collate UTF8_LCASE,map<varchar(3),binary>>",
        "map<decimal(10,2),struct<a:map<bigint,array<timestamp>>>>",
        "map<int,something new>",
    ],
)
def test_other_values_stay_as_they_are(dtype: str) -> None:
    assert with_keys_as_text(dtype, "`v`") == "`v`"
    assert json_text(dtype, "`v`") == f"to_json(`v`, {OPTIONS})"


COMPLEX = f"to_json(entry_1.key, {OPTIONS})"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        *(
            (key, text("entry_1.key"))
            for key in (
                *("date", "timestamp", "timestamp_ntz", "binary", "time(6)"),
                *("interval day to second", "interval year to month", "interval"),
            )
        ),
        # a complex value, which may have keys itself
        *(
            (key, COMPLEX)
            for key in ("array<date>", "struct<>", "struct<a b:int,c:decimal(10,2)>")
        ),
    ],
)
def test_a_key_becomes_the_text_of_a_value(key: str, expected: str) -> None:
    assert with_keys_as_text(f"map<{key},int>", "`v`") == entries(
        "`v`", "entry_1", expected, "entry_1.value"
    )


def test_maps_are_found_at_any_depth() -> None:
    sql = with_keys_as_text("array<map<string,struct<a:int,b:map<date,int>>>>", "`v`")

    inner = entries("entry_2.value.`b`", "entry_3", text("entry_3.key"), "entry_3.value")
    struct = f"if(entry_2.value is null, null, struct(entry_2.value.`a` as `a`, {inner} as `b`))"
    outer = entries("element_1", "entry_2", "entry_2.key", struct)
    assert sql == f"transform(`v`, element_1 -> {outer})"


@pytest.mark.parametrize("name", ["a b", "a`b", "a:b", "a,b", "c>d<e", "it's", "e:f,g<h>", "Ä:"])
def test_fields_may_have_any_name(name: str) -> None:
    field = "`{}`".format(name.replace("`", "``"))

    sql = with_keys_as_text(f"struct<x:int,{name}:map<date,int>,y:string>", "v")

    keys = entries(f"v.{field}", "entry_1", text("entry_1.key"), "entry_1.value")
    assert sql == f"if(v is null, null, struct(v.`x` as `x`, {keys} as {field}, v.`y` as `y`))"


@pytest.mark.parametrize(
    "dtype",
    [
        "map<date,something new>",
        "map<date,int",
        "map<date>",
        "map<date,int>>",
        "struct<a:int,b:map<date,int>,... 5 more fields>",
        "array<map<date,int>",
    ],
)
def test_a_map_in_a_type_that_cannot_be_read_is_an_error(dtype: str) -> None:
    with pytest.raises(ValueError, match="is no type"):
        with_keys_as_text(dtype, "`v`")
    with pytest.raises(ValueError, match="is no type"):
        json_value(dtype, "`v`")


READ = OPTIONS.replace("map(", "map('mode', 'FAILFAST', ")


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("variant", "parse_json(`v`)"),
        ("array<date>", f"from_json(`v`, 'array<date>', {READ})"),
        (
            "struct<it's:int>",
            f"from_json(`v`, concat('struct<`it', chr(39L), 's`:int>'), {READ})",
        ),
        (
            "array<varchar(3)>",
            f"transform(from_json(`v`, 'array<string>', {READ}), "
            "element_1 -> cast(element_1 as varchar(3)))",
        ),
        (
            "map<int,string>",
            entries(
                f"from_json(`v`, 'map<string,string>', {READ})",
                "entry_1",
                "cast(entry_1.key as int)",
                "entry_1.value",
            ),
        ),
        (
            "map<date,string>",
            entries(
                f"from_json(`v`, 'map<string,string>', {READ})",
                "entry_1",
                f"from_json(concat('[\"', entry_1.key, '\"]'), 'array<date>', {READ})[0]",
                "entry_1.value",
            ),
        ),
        (
            "map<struct<a:int>,int>",
            entries(
                f"from_json(`v`, 'map<string,int>', {READ})",
                "entry_1",
                f"from_json(entry_1.key, 'struct<`a`:int>', {READ})",
                "entry_1.value",
            ),
        ),
    ],
)
def test_json_becomes_the_value_that_it_was(dtype: str, expected: str) -> None:
    assert json_value(dtype, "`v`") == expected
