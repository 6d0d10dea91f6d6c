"""dbt's tests of contracts. Constraints are verified before a publication: no DDL has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from dbt.tests.adapter.constraints import test_constraints as constraints
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.util import read_file

from .translation import Translated

STRINGS = {r"\btext\b": "string"}


class SparksTypes(Translated):
    translation = STRINGS

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


class TestTableConstraintsColumnsEqual(SparksTypes, BaseTableConstraintsColumnsEqual):
    pass


class TestViewConstraintsColumnsEqual(SparksTypes, BaseViewConstraintsColumnsEqual):
    pass


class TestIncrementalConstraintsColumnsEqual(SparksTypes, BaseIncrementalConstraintsColumnsEqual):
    pass


class Told(Translated):
    translation = STRINGS

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["The model breaks its contract", "not_null (id) by 1 row"]


class TestConstraintsRollback(Told, BaseConstraintsRollback):
    pass


class TestIncrementalConstraintsRollback(Told, BaseIncrementalConstraintsRollback):
    pass


class Header(Translated):
    translation: ClassVar[dict[str, str]] = {
        "set session time zone": "set time zone",
        r"current_setting\('timezone'\)": "current_timezone()",
        **STRINGS,
    }


class TestTableContractSqlHeader(Header, BaseTableContractSqlHeader):
    pass


class TestIncrementalContractSqlHeader(Header, BaseIncrementalContractSqlHeader):
    pass


class SparksStatement(Translated):
    """The statement that builds the next snapshot; the name of each is another."""

    translation = STRINGS

    @pytest.fixture(scope="class", autouse=True)
    def one_batch(self) -> Iterator[None]:
        def read_without_batch(*path: Any) -> str:
            text = re.sub(r"\b\d{14}\w{8}\b", "<batch>", read_file(*path))
            return re.sub(r"'[0-9a-f]{16}'", "'<zone>'", text)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(constraints, "read_file", read_without_batch)
            yield

    @pytest.fixture(scope="class")
    def create(self, file_format: str) -> str:
        files = f"using {file_format}"
        if file_format == "parquet":
            files = "options ('compression' 'zstd')"
        marks = "'openmirroring.batch_id' = '<batch>', 'openmirroring.landing_zone' = '<zone>'"
        properties = f"tblproperties({marks})"
        return f"create table <model_identifier> {files} {properties} as"

    @pytest.fixture(scope="class")
    def expected_sql(self, create: str) -> str:
        return f"""
{create}
    select
       id,
       color,
       date_day
       from
    (
        -- depends_on: <foreign_key_model_identifier>
        select
            'blue' as color,
            1 as id,
            '2019-01-01' as date_day
    ) as model_subq
"""


class TestConstraintsRuntimeDdlEnforcement(SparksStatement, BaseConstraintsRuntimeDdlEnforcement):
    pass


class TestIncrementalConstraintsRuntimeDdlEnforcement(
    SparksStatement, BaseIncrementalConstraintsRuntimeDdlEnforcement
):
    pass


class TestModelConstraintsRuntimeEnforcement(
    SparksStatement, BaseModelConstraintsRuntimeEnforcement
):
    pass


class TestConstraintQuotedColumn(SparksStatement, BaseConstraintQuotedColumn):
    translation: ClassVar[dict[str, str]] = {'"from"': "`from`", **STRINGS}

    @pytest.fixture(scope="class")
    def expected_sql(self, create: str) -> str:
        return f"""
{create}
    select id, `from`, date_day
    from (
        select
          'blue' as `from`,
          1 as id,
          '2019-01-01' as date_day
    ) as model_subq
"""
