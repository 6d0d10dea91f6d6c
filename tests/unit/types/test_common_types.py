"""Types that hold the values of two types."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.types.casts import (
    common_type,
    has_same_fields,
    with_fields_of,
    with_new_fields,
    without_length,
)

SAME_BOTH_WAYS = [
    ("int", "bigint", "bigint"),
    ("tinyint", "smallint", "smallint"),
    ("int", "decimal(10,2)", "decimal(12,2)"),
    ("bigint", "decimal(38,19)", "decimal(38,19)"),
    ("bigint", "decimal(38,20)", None),
    ("decimal(10,2)", "decimal(12,3)", "decimal(12,3)"),
    ("decimal(10,8)", "decimal(10,2)", "decimal(16,8)"),
    ("decimal(38,0)", "decimal(2,1)", None),
    ("float", "double", "double"),
    ("int", "double", "double"),
    ("smallint", "float", "double"),
    ("bigint", "double", None),
    ("decimal(5,2)", "double", None),
    ("varchar(5)", "string", "string"),
    ("char(5)", "varchar(7)", "string"),
    ("int", "varchar(7)", "string"),
    ("decimal(5,2)", "string", "string"),
    ("boolean", "string", "string"),
    ("date", "string", "string"),
    ("double", "string", None),
    ("timestamp", "string", None),
    ("binary", "string", None),
    ("boolean", "int", None),
    ("date", "timestamp_ntz", "timestamp_ntz"),
    ("date", "timestamp", None),
    ("timestamp", "timestamp_ntz", None),
    ("string", "string collate UTF8_LCASE", None),
    ("variant", "string", None),
    ("void", "date", "date"),
    ("void", "array<int>", "array<int>"),
    ("array<int>", "array<void>", "array<int>"),
    ("array<int>", "array<string>", "array<string>"),
    ("array<int>", "int", None),
    ("array<int>", "array<date>", None),
    ("map<int,float>", "map<bigint,double>", "map<bigint,double>"),
    ("map<int,float>", "map<date,float>", None),
    ("struct<a:int>", "string", None),
    ("struct<a:int>", "struct<a:date>", None),
    ("something<new here>", "something<new here>", "something<new here>"),
    ("something<new here>", "int", None),
]


@pytest.mark.parametrize(("one", "other", "expected"), SAME_BOTH_WAYS)
def test_a_common_type_holds_the_values_of_both(
    one: str, other: str, expected: str | None
) -> None:
    assert common_type(one, other) == expected
    assert common_type(other, one) == expected


STORED = "array<struct<a b:int,C:struct<x:date>>>"
NEW = "array<struct<c:struct<y:int,X:string>,d:void,A B:bigint>>"


def test_a_common_type_has_the_fields_of_both() -> None:
    expected = "array<struct<a b:bigint,C:struct<x:string,y:int>,d:void>>"

    assert common_type(STORED, NEW) == expected
    assert common_type("struct<a:int,b:int>", "struct<b:int>") == "struct<a:int,b:int>"


def test_a_stored_type_takes_new_fields() -> None:
    expected = "array<struct<a b:int,C:struct<x:date,y:int>,d:void>>"

    assert with_new_fields(STORED, NEW) == expected
    assert with_new_fields("struct<a:int,b:int>", "struct<b:date>") == "struct<a:int,b:int>"
    assert with_new_fields("int", "array<int>") == "int"


def test_a_new_type_has_its_fields_in_the_stored_order() -> None:
    expected = "array<struct<a b:bigint,C:struct<x:string,y:int>,d:void>>"

    assert with_fields_of(STORED, NEW) == expected
    assert with_fields_of("struct<a:int,b:int>", "struct<b:date>") == "struct<b:date>"
    assert with_fields_of("int", "array<int>") == "array<int>"
    assert with_fields_of("int", "void") == "int"


@pytest.mark.parametrize(
    ("stored", "new", "same"),
    [
        ("int", "bigint", True),
        ("struct<a:int,b:int>", "struct<B:date,A:string>", True),
        ("struct<a:int>", "struct<a:int,b:int>", False),
        ("map<int,struct<a:int,b:int>>", "map<int,struct<a:int>>", False),
    ],
)
def test_structs_have_the_same_fields_in_any_order_and_case(
    stored: str, new: str, same: bool
) -> None:
    assert has_same_fields(stored, new) is same


def test_fields_whose_names_differ_only_in_case_are_not_found_by_name() -> None:
    ambiguous = "struct<a:int,A:int>"

    for merge in (common_type, with_new_fields, with_fields_of):
        assert merge(ambiguous, ambiguous) == ambiguous
        assert merge(ambiguous, "struct<a:int>") is None
        assert merge("struct<a:int>", ambiguous) is None


def test_texts_of_a_limited_length_are_strings_in_a_query() -> None:
    found = without_length("struct<char(3):array<char(3)>,b:map<varchar(2),int>>")

    assert found == "struct<char(3):array<string>,b:map<string,int>>"
