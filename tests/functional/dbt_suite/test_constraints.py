"""dbt's tests of contracts. Constraints are verified before a publication: no DDL has them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt.tests.adapter.constraints import test_constraints as constraints

from tests.functional.dbt_suite.translation import adapted

STRINGS = {r"\btext\b": "string"}
HEADER = {
    "set session time zone": "set time zone",
    r"current_setting\('timezone'\)": "current_timezone()",
    **STRINGS,
}


class SparksTypes:
    """Types have Spark's names."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["timestamp'2013-11-03 00:00:00-07'", "timestamp", "timestamp"],
            ["timestamp_ntz'2013-11-03 00:00:00'", "timestamp_ntz", "timestamp_ntz"],
            ["array('a','b','c')", "array<string>", "array<string>"],
            ["array(1,2,3)", "array<int>", "array<int>"],
            ["cast('1' as decimal(10,0))", "decimal(10,0)", "decimal(10,0)"],
            ["named_struct('bar', 'baz')", "struct<bar:string>", "struct<bar:string>"],
        ]


class OurErrors:
    """A broken constraint is reported before a publication, in our words."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["The model breaks its contract", "not_null (id) by 1 row"]


class WithoutClauses:
    """The statement that builds the next snapshot is compared without the clauses of its table."""

    @pytest.fixture(autouse=True)
    def without_clauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        normalized = constraints._normalize_whitespace
        clauses = re.compile(r"(or replace|using \w+|(options|tblproperties)\s*\([^)]*\))\s")
        monkeypatch.setattr(
            constraints, "_normalize_whitespace", lambda sql: normalized(clauses.sub("", sql))
        )


class SparksStatement(WithoutClauses):
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
            create table <model_identifier> as
            select id, color, date_day from (
                -- depends_on: <foreign_key_model_identifier>
                select 'blue' as color, 1 as id, '2019-01-01' as date_day
            ) as model_subq
        """


class QuotedColumn(WithoutClauses):
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
            create table <model_identifier> as
            select id, `from`, date_day from (
                select 'blue' as `from`, 1 as id, '2019-01-01' as date_day
            ) as model_subq
        """


def in_spark(test: type, mixin: type) -> Any:
    return adapted(test, mixin, translation=STRINGS)


TestTableColumns = in_spark(constraints.BaseTableConstraintsColumnsEqual, SparksTypes)
TestViewColumns = in_spark(constraints.BaseViewConstraintsColumnsEqual, SparksTypes)
TestIncrementalColumns = in_spark(constraints.BaseIncrementalConstraintsColumnsEqual, SparksTypes)
TestRollback = in_spark(constraints.BaseConstraintsRollback, OurErrors)
TestIncrementalRollback = in_spark(constraints.BaseIncrementalConstraintsRollback, OurErrors)
TestDdl = in_spark(constraints.BaseConstraintsRuntimeDdlEnforcement, SparksStatement)
TestIncrementalDdl = in_spark(
    constraints.BaseIncrementalConstraintsRuntimeDdlEnforcement, SparksStatement
)
TestModelDdl = in_spark(constraints.BaseModelConstraintsRuntimeEnforcement, SparksStatement)
TestQuotedColumn = adapted(
    constraints.BaseConstraintQuotedColumn,
    QuotedColumn,
    translation={'"from"': "`from`", **STRINGS},
)
TestHeader = adapted(constraints.BaseTableContractSqlHeader, translation=HEADER)
TestIncrementalHeader = adapted(constraints.BaseIncrementalContractSqlHeader, translation=HEADER)
