"""Statements of the user's code that may change the relation of their node."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.node.user_code import UserCode, changes, may_change
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

ORDERS = OpenMirroringRelation.create(schema="shop", identifier="Orders")
ODD = OpenMirroringRelation.create(schema="shop", identifier="a`b")

# statements whose target is certainly the relation
CHANGING = [
    "insert into `shop`.`Orders` values (1)",
    "INSERT OVERWRITE TABLE shop.orders select 1",
    "/* note */ delete from ORDERS where id = 1",
    "with a as (select 1) insert into lake.shop.orders select * from a",
    "merge with schema evolution into orders using new on a = b when matched then delete",
    "update orders set id = 1",
    "truncate table orders",
    "drop table if exists `orders`",
    "create or replace table shop . orders as select 1",
    "alter table orders drop column id",
    "begin insert into orders values (1); end",
    "from customers insert into orders select *",
]
# statements that name it, and may do anything
UNSURE = [
    "msck repair table orders",
    "call system.rewrite('shop.orders')",
    "insert into shop.customers select * from shop.orders",
    "insert into archive.orders select 1",
    "create table shop.orders_copy as select * from shop.orders",
]
READING = [
    "insert into shop.customers values (1)",
    "set spark.sql.ansi.enabled=true",
    "/* orders */ analyze table orders compute statistics",
    "select 'insert into' as text from orders",
    "refresh table orders",
    "with a as (select * from orders) select max(id) from a",
    "(select 1 from orders)",
    "create or replace temporary view new as select * from orders",
    "create function f() returns int return (select count(*) from orders)",
    "-- insert into orders",
    "",
]


@pytest.mark.parametrize(
    ("statement", "is_possible", "is_certain"),
    [
        *((statement, True, True) for statement in CHANGING),
        *((statement, True, False) for statement in UNSURE),
        *((statement, False, False) for statement in READING),
    ],
)
def test_a_statement_changes_the_relation_or_may_or_does_not(
    statement: str, is_possible: bool, is_certain: bool
) -> None:
    assert may_change(statement, ORDERS) is is_possible
    assert changes(statement, ORDERS) is is_certain


def test_a_name_is_found_with_its_quotes() -> None:
    assert may_change(f"delete from {ODD}", ODD)


def test_what_is_asked_about_a_statement_may_run_statements_itself() -> None:
    code, asked = UserCode(), []

    def allows(statement: str) -> bool:
        asked.append(statement)
        return code.allows("its own") and statement != "no"

    with code.asks(allows):
        assert code.allows("yes")
        assert not code.allows("no")
    assert code.allows("no")

    assert asked == ["yes", "no"]
