"""`_metadata.json`, as the service reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dbt.adapters.openmirroring.replicator.errors import TableError

PARQUET = "parquet"

# the data types of `SchemaDefinition`, and the types that Arrow's reader converts their text to
TEXT_TYPES = {
    "Double": pa.float64(),
    "Single": pa.float32(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    # the reader accepts a column of timestamps only if all of them have a zone, or none has
    "DateTime": pa.string(),
    "IDate": pa.date32(),
    "ITime": pa.time64("us"),
    "String": pa.string(),
    "Boolean": pa.bool_(),
    "ByteArray": pa.binary(),
}

_STRATEGIES = {"sequentialfilename": False, "lastupdatetimefiledetection": True}

# The allowed values for delimited text, in the order of `TextFormat`; the first is the default
# (specification, "Delimited text requirements").
_ALLOWED = {
    "RowSeparator": ("\r\n", "\n", "\r"),
    "ColumnSeparator": (",", ";", "|", "\t"),
    "QuoteCharacter": ('"', "'", ""),
    "EscapeCharacter": ("\\", "/", '"', ""),
}

# The encodings of the specification and their usual spellings. Python knows more encodings, and
# some of these are not for text.
_ENCODINGS = (
    *("ascii", "cp1252", "iso-8859-1", "latin-1", "latin1", "us-ascii", "utf-16", "utf-16-be"),
    *("utf-16-le", "utf-16be", "utf-16le", "utf-8", "utf8", "windows-1252"),
)


@dataclass(frozen=True)
class TextColumn:
    """A column of `SchemaDefinition`."""

    name: str
    data_type: str
    nullable: bool


@dataclass(frozen=True)
class TextFormat:
    """The format of delimited text."""

    columns: tuple[TextColumn, ...]
    row_separator: str
    column_separator: str
    quote: str
    escape: str
    null: str
    encoding: str


@dataclass(frozen=True)
class TableMetadata:
    """The metadata of a table, as its publisher declares it.

    Args:
        key_columns: the key columns, as spelled in the files; without them rows are only added
        by_modification_time: whether the modification times of the files are their order, rather
            than the numbers in their names
        upsert_by_default: whether a row without a row marker is an upsert, rather than an insert
        extension: the extension of the data files, without a dot
        text: the format of delimited text; None for Parquet
    """

    key_columns: tuple[str, ...] = ()
    by_modification_time: bool = False
    upsert_by_default: bool = False
    extension: str = PARQUET
    text: TextFormat | None = None

    @classmethod
    def parse(cls, record: dict[str, Any]) -> TableMetadata:
        """Parse `_metadata.json`. As in the service, property names are case-insensitive.

        Raises:
            TableError: if the specification does not allow a value
        """
        properties = _properties(record)
        keys = properties.get("keycolumns") or []
        if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
            raise _invalid(f"keyColumns must be a list of names, not {keys!r}")
        if both := clash(keys):
            raise _invalid(f"keyColumns has {both}")
        strategy = properties.get("filedetectionstrategy", "SequentialFileName")
        by_time = _STRATEGIES.get(str(strategy).casefold())
        if by_time is None:
            raise _invalid(
                "fileDetectionStrategy must be SequentialFileName or LastUpdateTimeFileDetection, "
                f"not {strategy!r}"
            )
        upsert = _flag(properties, "isUpsertDefaultRowMarker", False)
        if upsert and not keys:
            raise _invalid("isUpsertDefaultRowMarker needs keyColumns")
        return cls(tuple(keys), by_time, upsert, *_file_format(properties))


def _file_format(properties: Mapping[str, Any]) -> tuple[str, TextFormat | None]:
    """Return the extension of the data files, and the format of delimited text."""
    of_text = ("schemadefinition", "fileformattypeproperties", "fileextension")
    described = any(map(properties.get, of_text))
    name = str(properties.get("fileformat") or ("csv" if described else PARQUET))
    if name.casefold() == PARQUET:
        return PARQUET, None
    if name.casefold() not in ("csv", "delimitedtext"):
        raise _invalid(f"FileFormat must be CSV or DelimitedText, not {name!r}")
    extension = properties.get("fileextension") or ("csv" if name.casefold() == "csv" else None)
    if not extension:
        raise _invalid("DelimitedText needs FileExtension")
    return str(extension).lstrip("."), _text_format(properties)


def _text_format(properties: Mapping[str, Any]) -> TextFormat:
    options = _properties(properties.get("fileformattypeproperties") or {})
    if not _flag(options, "FirstRowAsHeader", True):
        raise _invalid("FirstRowAsHeader must be true")
    values = {name: options.get(name.casefold(), a[0]) for name, a in _ALLOWED.items()}
    for name, value in values.items():
        if value not in _ALLOWED[name]:
            raise _invalid(f"{name} must be one of {_ALLOWED[name]}, not {value!r}")
    encoding = options.get("encoding", "UTF-8")
    if str(encoding).casefold() not in _ENCODINGS:
        raise _invalid(f"Encoding must be one of {', '.join(_ENCODINGS)}, not {encoding!r}")
    row, column, quote, escape = values.values()
    null = str(options.get("nullvalue", ""))
    return TextFormat(_columns(properties), row, column, quote, escape, null, str(encoding))


def _columns(properties: Mapping[str, Any]) -> tuple[TextColumn, ...]:
    definition = _properties(properties.get("schemadefinition") or {})
    described = definition.get("columns") or []
    if not isinstance(described, list):
        raise _invalid(f"Columns must be a list, not {described!r}")
    types = {name.casefold(): name for name in TEXT_TYPES}
    columns = []
    for item in described:
        column = _properties(item)
        name, data_type = column.get("name"), types.get(str(column.get("datatype")).casefold())
        if not name or not isinstance(name, str) or not data_type:
            raise _invalid(
                f"SchemaDefinition: {item!r} needs a Name, and one of the types "
                f"{', '.join(TEXT_TYPES)}"
            )
        columns.append(TextColumn(name, data_type, _flag(column, "IsNullable", True)))
    if not columns:
        raise _invalid("delimited text needs a SchemaDefinition with Columns")
    if both := clash(column.name for column in columns):
        raise _invalid(f"SchemaDefinition has {both}")
    return tuple(columns)


def clash(names: Iterable[str]) -> str:
    """Say which two names cannot be columns of one table: they differ in case only, or not at all.

    Returns:
        words that follow "has"; empty if there are none
    """
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            return f"{seen[name.lower()]!r} and {name!r}: one table cannot have both"
        seen[name.lower()] = name
    return ""


def _properties(values: Any) -> dict[str, Any]:
    """Return the properties of a JSON object that are not null, by their names in lower case."""
    if not isinstance(values, dict):
        raise _invalid(f"{values!r} is not an object")
    return {name.casefold(): value for name, value in values.items() if value is not None}


def _flag(properties: Mapping[str, Any], name: str, default: bool) -> bool:
    value = properties.get(name.casefold(), default)
    if str(value).casefold() not in ("true", "false"):
        raise _invalid(f"{name} must be true or false, not {value!r}")
    return str(value).casefold() == "true"


def _invalid(finding: str) -> TableError:
    return TableError("InvalidMetadata", f"_metadata.json is not valid: {finding}.")
