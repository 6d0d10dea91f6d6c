"""Statements of the user's code that may change the relation of their node."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.node.user_code import UserCode, changes, may_change
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
        "from customers insert into orders select *",
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
        "with a as (select * from orders) select max(id) from a",
        "(select 1 from orders)",
        "create or replace temporary view new as select * from orders",
        "create function f() returns int return (select count(*) from orders)",
        "-- nothing but orders",
        "",
    ],
)
def test_a_statement_that_reads_or_names_others_does_not(statement: str) -> None:
    assert not may_change(statement, ORDERS)


def test_a_name_is_found_with_its_quotes() -> None:
    odd = OpenMirroringRelation.create(schema="shop", identifier="a`b")

    assert may_change(f"delete from {odd}", odd)


@pytest.mark.parametrize(
    "statement",
    [
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
    ],
)
def test_a_statement_whose_target_is_the_relation_changes_it(statement: str) -> None:
    assert changes(statement, ORDERS)


@pytest.mark.parametrize(
    "statement",
    [
        "insert into shop.customers select * from shop.orders",
        "insert into archive.orders select 1",
        "create table shop.orders_copy as select * from shop.orders",
        "with a as (select * from orders) select max(id) from a",
        "select 'insert into' as text from orders",
        "-- insert into orders",
    ],
)
def test_a_statement_with_another_target_does_not_certainly_change_it(statement: str) -> None:
    assert not changes(statement, ORDERS)


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
