"""Delimited text says what the rows say: to our replicator, and to Arrow's reader."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.functional.project import Project, Row, canonical
from tests.functional.typed_tables import TEXTS, text

# each is one that some spelling could lose, or take for something else
HOSTILE = [
    *("N/A", '""', "''", '"', "'", "/", "\\\\", '\\"', "/'", ",", ";", "|", "\r", "\n", "\r\n"),
    *('a"b', "a'b", "a\\", 'a\\"', "a/", '"a"', "'a'", '\\",', "\\n", "a\r\nb", "#", " a "),
    *("\\N", "__rowMarker__", "列", *TEXTS),
]

ARROW_TYPES = {
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "Boolean": pa.bool_(),
    "String": pa.string(),
}


def texts(values: list[str], changed: bool = False) -> str:
    """A model: each value as a key with itself, and once more as that of a number."""
    rows = [f"({i}, {text(value)})" for i, value in enumerate(values)]
    rows.append(f"({len(values)}, {text('gone') if changed else 'null'})")
    return (
        "select cast(id as int) as id, name, id % 2 = 0 as even "
        f"from values {', '.join(rows[changed:])} as t(id, name)"
    )


def arrow_rows(folder: Path, file: Path) -> Counter[Row]:
    """The rows of a file, read by Arrow's reader as `_metadata.json` declares them."""
    metadata = json.loads((folder / "_metadata.json").read_text())
    options = metadata["FileFormatTypeProperties"]
    types = {
        column["Name"]: ARROW_TYPES[column["DataType"]]
        for column in metadata["SchemaDefinition"]["Columns"]
    }
    quote, escape = options["QuoteCharacter"], options["EscapeCharacter"]
    content = file.read_bytes()
    table = pacsv.read_csv(
        pa.BufferReader(gzip.decompress(content) if file.suffix == ".gz" else content),
        read_options=pacsv.ReadOptions(encoding=options["Encoding"]),
        parse_options=pacsv.ParseOptions(
            delimiter=options["ColumnSeparator"],
            quote_char=quote or False,
            double_quote=bool(quote) and quote == escape,
            escape_char=escape if escape and escape != quote else False,
            newlines_in_values=True,
        ),
        convert_options=pacsv.ConvertOptions(
            column_types={**types, "__rowMarker__": pa.int32()},
            null_values=[options["NullValue"]],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return Counter(canonical(row.items()) for row in table.to_pylist())


def assert_landed(project: Project, table: str = "orders") -> None:
    """The replica equals the model, and what Arrow reads of a load does too."""
    project.assert_mirrored(table)
    journal = json.loads((project.folder(table) / "_journal.json").read_text())
    if journal["batch"]["publication"] in ("initial", "rebuild"):
        read: Counter[Row] = Counter()
        for file in project.files(table):
            read += arrow_rows(project.folder(table), file)
        assert read == project.relation(table)


SPELLINGS: dict[str, dict[str, Any]] = {
    "csv": {"landing_format": "csv"},
    "tsv": {"landing_format": "tsv", "compression": "gzip"},
    "psv": {"landing_format": "psv", "delimited": {"escape_character": '"'}},
    "semicolons": {
        "landing_format": "csv",
        "delimited": {"column_separator": ";", "row_separator": "\n", "null_value": "N/A"},
    },
    "apostrophes": {
        "landing_format": "csv",
        "delimited": {"quote_character": "'", "escape_character": "/", "row_separator": "\r"},
    },
    "apostrophes_and_quotes": {
        "landing_format": "tsv",
        "delimited": {"quote_character": "'", "escape_character": '"', "null_value": ""},
    },
    "utf_16": {"landing_format": "csv", "delimited": {"encoding": "utf-16"}},
    "utf_16be": {
        "landing_format": "psv",
        "compression": "gzip",
        "delimited": {"encoding": "utf-16be", "row_separator": "\n"},
    },
}


# texts that are all that a spelling can hold
FEWER = {
    "ascii": ("az~", {"encoding": "ascii"}),
    "latin": ("\u00e9\u00ff\u00a0", {"encoding": "iso-8859-1"}),
    "windows": ("\u20ac\u0160\u2019\u00e9", {"encoding": "windows-1252"}),
    "plain": (
        "\"B'\\",
        {"quote_character": "", "escape_character": "", "null_value": ""},
    ),
}


def assert_read_back(
    project: Project, models: dict[str, tuple[list[str], dict[str, Any]]]
) -> None:
    """All texts are those of the model, on the first run and after one has changed."""
    for changed in (False, True):
        for name, (values, spelling) in models.items():
            project.model(texts(values, changed), name, unique_key="id", **spelling)

        project.run()

        for name in models:
            assert_landed(project, name)
    for result in project.results().values():
        response = result["adapter_response"]
        assert response["publication"] == "changes"
        assert (response["rows_updated"], response["rows_deleted"]) == (1, 1)


def test_every_value_is_read_back_as_it_was_in_every_spelling(project: Project) -> None:
    assert_read_back(project, {name: (HOSTILE, spelling) for name, spelling in SPELLINGS.items()})


def test_a_spelling_without_quotes_or_with_few_letters_holds_what_it_has(project: Project) -> None:
    models = {
        name: (["other", letters], {"landing_format": "csv", "delimited": delimited})
        for name, (letters, delimited) in FEWER.items()
    }

    assert_read_back(project, models)

    for name, (letters, delimited) in FEWER.items():
        written = project.files(name)[0].read_bytes()
        assert letters.encode(delimited.get("encoding", "utf-8")) in written
        assert (b'"' not in written.splitlines()[0]) == (name == "plain")


spellings = st.fixed_dictionaries(
    {
        "landing_format": st.sampled_from(["csv", "tsv", "psv"]),
        "compression": st.sampled_from(["none", "gzip"]),
        "delimited": st.fixed_dictionaries(
            {
                "row_separator": st.sampled_from(["\r\n", "\n", "\r"]),
                "column_separator": st.sampled_from([",", ";", "|", "\t"]),
                "quote_character": st.sampled_from(['"', "'"]),
                "escape_character": st.sampled_from(["\\", "/", '"']),
                "null_value": st.sampled_from(["", "null", "NA"]),
                "encoding": st.sampled_from(["UTF-8", "utf-16", "utf-16le", "utf-16be"]),
            }
        ),
    }
)
hostile_texts = st.text(
    st.one_of(
        st.sampled_from("\"'\\/,;|\t\r\n nulNA\0"), st.characters(exclude_categories=["Cs"])
    ),
    max_size=10,
)


@pytest.mark.slow
@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    models=st.lists(
        st.tuples(spellings, st.lists(hostile_texts, min_size=20, max_size=60)),
        min_size=3,
        max_size=3,
    )
)
def test_texts_that_nobody_thought_of_are_read_back_as_they_were(
    project: Project, models: list[tuple[dict[str, Any], list[str]]]
) -> None:
    for i, (spelling, values) in enumerate(models):
        project.model(texts(values), f"generated_{i}", unique_key="id", **spelling)

    project.run("--full-refresh")

    for i in range(len(models)):
        assert_landed(project, f"generated_{i}")


def test_values_that_text_cannot_spell_are_refused_and_nothing_is_changed(
    project: Project,
) -> None:
    unquoted = {"delimited": {"quote_character": ""}}
    cases: dict[str, tuple[str, dict[str, Any], str]] = {
        "decimal": ("cast(1 as decimal(9, 2)) as x", {}, "cast(`x` as double)"),
        "bytes": ("x'ff' as x", {}, "base64(`x`)"),
        "year": ("date'-0001-01-01' as x", {}, "before the year 1"),
        "separator": ("'a,b' as x", unquoted, "A value of the column x would end too soon"),
        "null": ("'null' as x", unquoted, "Nothing was published. [OM315: "),
        "header": ("1 as `a,b`", unquoted, "The name of the column a,b would end too soon"),
        **{
            name: (
                "'\u5217' as x",
                {"delimited": delimited},
                f"a character that {encoding} does not have",
            )
            for name, (_, delimited) in FEWER.items()
            if (encoding := delimited.get("encoding"))
        },
        "quote": (
            "'a\"b' as x",
            {"delimited": {"escape_character": ""}},
            "Nothing was published. [OM316: ",
        ),
    }
    for name, (column, options, _) in cases.items():
        project.model(f"select 1 as id, {column}", name, **{"landing_format": "csv", **options})
    project.model("select 1 as x", "one", landing_format="csv", delimited={"null_value": ""})

    assert not project.dbt("run")

    messages = {name: result["message"] for name, result in project.results().items()}
    for name, (_, _, finding) in cases.items():
        assert finding in messages[name]
    assert "would be empty" in messages["one"]
    assert not any(path.is_file() for path in project.landing_zone.rglob("*"))


def test_every_file_has_a_header_also_of_no_row(project: Project) -> None:
    sql = "select id, sha2(concat(id, '{}'), 512) as s from range(0, {}, 1, 4)"
    options = {"unique_key": "id", "target_file_size": "200kb", "landing_format": "psv"}
    for word, rows in (("a", 0), ("a", 9000), ("b", 9000)):
        before = len(project.files())
        project.model(sql.format(word, rows), **options)
        response = project.run()
        assert_landed(project)
        new = project.files()[before:]
        assert len(new) == response["files_written"]
        assert len(new) > 1 or not rows
        marker = '|"__rowMarker__"' if rows else ""
        for file in new:
            lines = file.read_bytes().decode().split("\r\n")
            assert lines.count(f'"id"|"s"{marker}') == 1
            assert lines[0].startswith('"id"')
            assert len(lines) > 2 or not rows


def test_rows_without_a_key_are_added_and_a_format_is_changed(project: Project) -> None:
    options = {"landing_format": "csv", "compression": "gzip"}
    project.model(texts(HOSTILE), **options)
    project.run()
    project.model(texts(HOSTILE) + " union all select 99, 'more', true", **options)
    response = project.run()
    assert (response["last_file"], response["rows_inserted"]) == (f"{2:020d}.csv.gz", 1)
    project.assert_mirrored()
    project.model(texts(HOSTILE), landing_format="parquet")
    assert project.run()["publication"] == "rebuild"
    project.assert_mirrored()
