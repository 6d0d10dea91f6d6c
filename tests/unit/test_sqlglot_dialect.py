"""Tools for lineage name the adapter's type in dbt's manifest as the dialect for sqlglot."""

from __future__ import annotations

import sqlglot
from sqlglot.lineage import lineage

SQL = """
with paid as (select order_id, sum(amount) as total from `shop`.`payments` group by order_id)
select /*+ broadcast(o) */ o.id, p.total, explode(o.tags) as tag
from `shop`.`orders` as o left anti join paid as p on o.id <=> p.order_id
"""


def test_sqlglot_knows_the_dialect_as_that_of_spark() -> None:
    parsed = sqlglot.parse_one(SQL, dialect="openmirroring")

    assert parsed == sqlglot.parse_one(SQL, dialect="spark")
    assert parsed.sql(dialect="openmirroring") == parsed.sql(dialect="spark")


def test_the_lineage_of_a_column_leads_to_its_table() -> None:
    found = lineage("total", SQL, schema={}, dialect="openmirroring")

    assert [node.name for node in found.walk()] == ["total", "p.total", "payments.amount"]
