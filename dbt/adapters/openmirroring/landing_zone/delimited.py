"""The format of delimited text files (specification, "Delimited text requirements")."""

from __future__ import annotations

from dataclasses import dataclass

# the default column separator of each landing format, which is also the file extension
COLUMN_SEPARATORS = {"csv": ",", "tsv": "\t", "psv": "|"}

# The specification allows these values. Of its "wide range" of encodings, these can be written.
ALLOWED = {
    "row_separator": ("\r\n", "\n", "\r"),
    "column_separator": (",", ";", "|", "\t"),
    "quote_character": ('"', "'", ""),
    "escape_character": ("\\", "/", '"', ""),
    "encoding": (
        *("UTF-8", "ascii", "iso-8859-1", "windows-1252"),
        *("utf-16", "utf-16le", "utf-16be"),
    ),
}

# the `DataType` of `SchemaDefinition` for each landed type; it has none for decimals
_DATA_TYPES = {
    "boolean": "Boolean",
    "tinyint": "Int16",
    "smallint": "Int16",
    "int": "Int32",
    "bigint": "Int64",
    "float": "Single",
    "double": "Double",
    "string": "String",
    "binary": "ByteArray",
    "date": "IDate",
    "timestamp": "DateTime",
    "time": "ITime",
}


@dataclass(frozen=True)
class DelimitedText:
    """The options of a table's files: the `FileFormatTypeProperties` of `_metadata.json`.

    Args:
        column_separator, row_separator, quote_character: the text between and around values
        escape_character: the character before a quote in a quoted value, and before itself
        null_value: the text for NULL; a quoted value is never NULL
        encoding: one of the encodings in ALLOWED
    """

    column_separator: str = ","
    row_separator: str = "\r\n"
    quote_character: str = '"'
    escape_character: str = "\\"
    null_value: str = "null"
    encoding: str = "UTF-8"

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{getattr(self, name)!r} is no {name}")

    @property
    def properties(self) -> dict[str, str | bool]:
        return {
            "FirstRowAsHeader": True,
            "RowSeparator": self.row_separator,
            "ColumnSeparator": self.column_separator,
            "QuoteCharacter": self.quote_character,
            "EscapeCharacter": self.escape_character,
            "NullValue": self.null_value,
            "Encoding": self.encoding,
        }


def data_type(landed_type: str) -> str | None:
    """Return the `DataType` of `SchemaDefinition` for a landed type; None if there is none."""
    return _DATA_TYPES.get(landed_type.partition("(")[0])
