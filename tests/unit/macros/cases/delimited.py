"""Rows as lines of text, and these lines as rows."""

from __future__ import annotations

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.types.columns import LandingColumn
from tests.unit.macros.cases.shop import (
    DAY,
    ID,
    ODD,
    PHOTO,
    SEEN,
    STATUS,
    Case,
    case,
    plan,
)

ROWS = "select * from rows_that_land"
URL = "file:/lake/it's [odd]/rows"
COLUMNS, TYPES = (ID, STATUS), (ID, STATUS, DAY, SEEN, PHOTO, ODD)


def lines(
    text: DelimitedText, columns: tuple[LandingColumn, ...] = COLUMNS, rows_per_file: int = 0
) -> Case:
    return case(
        "mirror_lines",
        rows=ROWS,
        columns=columns,
        plan=loaded(text, columns),
        rows_per_file=rows_per_file,
    )


def loaded(text: DelimitedText, columns: tuple[LandingColumn, ...] = COLUMNS) -> SparkPlan:
    return plan(columns, ("id",), RowCounts(3), publication="initial", delimited=text)


def changed(text: DelimitedText) -> SparkPlan:
    return plan(COLUMNS, ("id",), RowCounts(3, 2, 1), delimited=text)


CSV = DelimitedText()
TSV = DelimitedText("\t", "\n", "'", "/", "NULL's")
QUOTED_TWICE = DelimitedText(";", "\r", '"', '"', "")

CASES = {
    "lines": lines(CSV),
    "lines_types": lines(CSV, TYPES),
    "lines_marked": case(
        "mirror_lines", rows=ROWS, columns=COLUMNS, plan=changed(CSV), rows_per_file=0
    ),
    "lines_several_files": lines(CSV, rows_per_file=5000),
    "lines_without_rows": case(
        "mirror_lines",
        rows=ROWS,
        columns=COLUMNS,
        plan=plan(COLUMNS, ("id",), RowCounts(), publication="initial", delimited=CSV),
        rows_per_file=0,
    ),
    "lines_tsv": lines(TSV),
    "lines_quotes_doubled": lines(QUOTED_TWICE),
    "lines_without_escape": lines(DelimitedText(escape_character="")),
    "lines_without_quotes": lines(DelimitedText("|", quote_character="")),
    "lines_without_quotes_and_escape": lines(
        DelimitedText(quote_character="", escape_character="")
    ),
    "lines_ascii": lines(DelimitedText(encoding="ascii")),
    "lines_windows_1252": lines(DelimitedText(encoding="windows-1252")),
    "lines_utf_16": lines(DelimitedText(encoding="utf-16")),
    "staged_lines": case("mirror_staged_lines", url=URL, plan=loaded(CSV)),
    "staged_lines_marked": case("mirror_staged_lines", url=URL, plan=changed(TSV)),
    "staged_lines_utf_16": case(
        "mirror_staged_lines", url=URL, plan=loaded(DelimitedText(encoding="utf-16"))
    ),
    "count_lines": case("mirror_count_lines", plan=loaded(CSV)),
    "count_lines_marked": case("mirror_count_lines", plan=changed(CSV)),
}
