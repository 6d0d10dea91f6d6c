"""`_metadata.json`, as the service reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dbt.adapters.openmirroring.replicator.errors import TableError

PARQUET = "parquet"

DATA_TYPES = (
    "Double", "Single", "Int16", "Int32", "Int64", "DateTime", "IDate", "ITime", "String",
    "Boolean", "ByteArray",
)  # fmt: skip

_STRATEGIES = {"sequentialfilename": False, "lastupdatetimefiledetection": True}

# The allowed values for delimited text; the first is the default (specification, "Delimited text
# requirements").
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
        properties = _Properties(record)
        keys = properties.get("keyColumns") or []
        if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
            raise _invalid(f"keyColumns must be a list of names, not {keys!r}")
        if both := clash(keys):
            raise _invalid(f"keyColumns has {both}")
        strategy = properties.get("fileDetectionStrategy", "SequentialFileName")
        if str(strategy).casefold() not in _STRATEGIES:
            raise _invalid(
                "fileDetectionStrategy must be SequentialFileName or LastUpdateTimeFileDetection, "
                f"not {strategy!r}"
            )
        upsert = properties.flag("isUpsertDefaultRowMarker")
        if upsert and not keys:
            raise _invalid("isUpsertDefaultRowMarker needs keyColumns")
        extension, text = _file_format(properties)
        by_time = _STRATEGIES[str(strategy).casefold()]
        return cls(tuple(keys), by_time, upsert, extension, text)


def _file_format(properties: _Properties) -> tuple[str, TextFormat | None]:
    of_text = ("SchemaDefinition", "FileFormatTypeProperties", "FileExtension")
    described = any(map(properties.get, of_text))
    name = properties.get("FileFormat") or ("csv" if described else PARQUET)
    if str(name).casefold() == PARQUET:
        return PARQUET, None
    if str(name).casefold() not in ("csv", "delimitedtext"):
        raise _invalid(f"FileFormat must be CSV or DelimitedText, not {name!r}")
    extension = properties.get("FileExtension") or ("csv" if name.casefold() == "csv" else None)
    if not extension:
        raise _invalid("DelimitedText needs FileExtension")
    return str(extension).lstrip("."), _text_format(properties)


def _text_format(properties: _Properties) -> TextFormat:
    options = _Properties(properties.get("FileFormatTypeProperties") or {})
    if not options.flag("FirstRowAsHeader", default=True):
        raise _invalid("FirstRowAsHeader must be true")
    values = {name: options.get(name, allowed[0]) for name, allowed in _ALLOWED.items()}
    for name, value in values.items():
        if value not in _ALLOWED[name]:
            raise _invalid(f"{name} must be one of {_ALLOWED[name]}, not {value!r}")
    encoding = options.get("Encoding", "UTF-8")
    if str(encoding).casefold() not in _ENCODINGS:
        raise _invalid(f"Encoding must be one of {', '.join(_ENCODINGS)}, not {encoding!r}")
    return TextFormat(
        _columns(properties),
        row_separator=values["RowSeparator"],
        column_separator=values["ColumnSeparator"],
        quote=values["QuoteCharacter"],
        escape=values["EscapeCharacter"],
        null=str(options.get("NullValue", "")),
        encoding=str(encoding),
    )


def _columns(properties: _Properties) -> tuple[TextColumn, ...]:
    definition = _Properties(properties.get("SchemaDefinition") or {})
    described = definition.get("Columns") or []
    if not isinstance(described, list):
        raise _invalid(f"Columns must be a list, not {described!r}")
    types = {name.casefold(): name for name in DATA_TYPES}
    columns = []
    for item in described:
        column = _Properties(item)
        name, data_type = column.get("Name"), types.get(str(column.get("DataType")).casefold())
        if not name or not isinstance(name, str) or not data_type:
            raise _invalid(
                f"SchemaDefinition: {item!r} needs a Name, and one of the types "
                f"{', '.join(DATA_TYPES)}"
            )
        nullable = column.flag("IsNullable", default=True)
        columns.append(TextColumn(name, data_type, nullable))
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


class _Properties:
    """A JSON object with case-insensitive names."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise _invalid(f"{values!r} is not an object")
        self._values = {name.casefold(): value for name, value in values.items()}

    def get(self, name: str, default: Any = None) -> Any:
        value = self._values.get(name.casefold())
        return default if value is None else value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.get(name, default)
        if str(value).casefold() not in ("true", "false"):
            raise _invalid(f"{name} must be true or false, not {value!r}")
        return str(value).casefold() == "true"


def _invalid(finding: str) -> TableError:
    return TableError("InvalidMetadata", f"_metadata.json is not valid: {finding}.")
