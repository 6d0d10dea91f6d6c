"""Statements of hooks that may change the relation of their node."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.node.hooks import may_change
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

ORDERS = OpenMirroringRelation.create(schema="shop", identifier="Orders")


@pytest.mark.parametrize(
    "statement",
    [
        "insert into `shop`.`Orders` values (1)",
        "INSERT OVERWRITE shop.orders select 1",
        "-- a comment\n/* another */ delete from ORDERS",
        "with a as (select 1) insert into orders select * from a",
        "truncate table orders",
        "alter table orders add partition (p = 1)",
        "msck repair table orders",
        "call system.rewrite('shop.orders')",
        "begin insert into orders values (1); end",
        "drop table if exists orders",
    ],
)
def test_a_statement_that_names_the_relation_may_change_it(statement: str) -> None:
    assert may_change(statement, ORDERS)


@pytest.mark.parametrize(
    "statement",
    [
        "insert into shop.customers values (1)",
        "set spark.sql.ansi.enabled=true",
        "/* orders */ analyze table orders compute statistics",
        "select count(*) from orders",
        "refresh table orders",
        "-- nothing but orders",
        "",
    ],
)
def test_a_statement_that_reads_or_names_others_does_not(statement: str) -> None:
    assert not may_change(statement, ORDERS)


def test_a_name_is_found_with_its_quotes() -> None:
    odd = OpenMirroringRelation.create(schema="shop", identifier="a`b")

    assert may_change(f"delete from {odd}", odd)
