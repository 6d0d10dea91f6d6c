"""The losses of values that get another type."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.types.casts import Cast


@pytest.mark.parametrize(
    ("source", "target", "loss"),
    [
        ("double", "int", "digits"),
        ("decimal(5,3)", "decimal(5,2)", "digits"),
        ("float", "decimal(5,2)", "digits"),
        ("int", "boolean", "digits"),
        ("timestamp", "date", "digits"),
        ("timestamp_ntz", "date", "digits"),
        ("timestamp", "bigint", "digits"),
        ("bigint", "int", "digits"),
        ("int", "bigint", ""),
        ("bigint", "double", "whole"),
        ("decimal(5,2)", "float", "whole"),
        ("double", "float", "infinite"),
        ("float", "double", ""),
        ("string", "Numeric(5, 2)", "text_digits"),
        ("varchar(9)", "date", "text_time"),
        ("string", "double", ""),
        ("string", "INT", ""),
        ("date", "timestamp", ""),
        ("boolean", "int", ""),
        ("array<double>", "array<int>", ""),
    ],
)
def test_a_cast_knows_what_can_be_lost(source: str, target: str, loss: str) -> None:
    assert Cast.of(source, target).loss == loss
    assert Cast.of(source, target, is_exact=False).loss == ""


def test_a_cast_of_a_nested_type_has_the_casts_of_its_parts() -> None:
    cast = Cast.of("map<int,array<struct<B:double>>>", "map<bigint,array<struct<a:int,b:int>>>")

    assert cast.entry
    key, value = cast.entry
    assert key == Cast("int", "bigint")
    assert value.element
    assert value.element.fields == [
        ("`a`", None, Cast("void", "int")),
        ("`b`", "`B`", Cast("double", "int")),
    ]


@pytest.mark.parametrize(
    ("target", "scale"), [("decimal(5,2)", 2), ("decimal(5)", 0), ("numeric( 5 , 3 )", 3)]
)
def test_a_cast_knows_its_types_and_the_digits_of_its_target(target: str, scale: int) -> None:
    cast = Cast.of("struct<a b:int>", target)

    assert (cast.source_type, cast.type, cast.scale) == ("struct<`a b`:int>", target, scale)
