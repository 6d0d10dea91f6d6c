"""The format of delimited text files (specification, "Delimited text requirements")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

# the default column separator of each landing format, which is also the file extension
COLUMN_SEPARATORS = {"csv": ",", "tsv": "\t", "psv": "|"}

# The specification allows these values. Of its "wide range" of encodings, Spark supports these.
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

# the `DataType` of `SchemaDefinition` for each Spark type; it has none for decimals
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

# the charset for Spark's `encode`, where it differs from the encoding
_CHARSETS = {"ascii": "US-ASCII", "utf-16": "UTF-16LE", "windows-1252": "iso-8859-1"}

_BYTES = bytes(range(256))


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

    @property
    def charset(self) -> str | None:
        """The charset for Spark's `encode`; None for UTF-8, the encoding of Spark's strings."""
        if self.encoding == "UTF-8":
            return None
        return _CHARSETS.get(self.encoding, self.encoding)

    @property
    def reader_charset(self) -> str:
        """The charset for Spark's reader, which removes a byte order mark only for `UTF-16`."""
        return "UTF-16" if self.byte_order_mark else self.charset or "UTF-8"

    @property
    def byte_order_mark(self) -> str:
        """The byte order mark of a file in hexadecimal digits; empty if it has none."""
        return "FFFE" if self.encoding == "utf-16" else ""

    @property
    def encoded_row_separator(self) -> str:
        """The encoded row separator, with one Latin-1 character for each byte."""
        return self.row_separator.encode(self.charset or "ascii").decode("latin-1")

    @cached_property
    def translation(self) -> tuple[str, str] | None:
        """The windows-1252 characters to replace, and the iso-8859-1 ones with the same bytes.

        Both are escaped for SQL. None for other encodings, which Spark supports itself.
        """
        if self.encoding != "windows-1252":
            return None
        places = [
            n for n in _BYTES if bytes([n]).decode(self.encoding, "ignore") not in ("", chr(n))
        ]
        return _escaped(bytes(places).decode(self.encoding)), _escaped(map(chr, places))

    @cached_property
    def unencodable(self) -> str:
        """A regular expression for characters that the encoding lacks; empty if it lacks none."""
        if self.encoding.lower().startswith("utf"):
            return ""
        known = (f"\\x{{{ord(c):x}}}" for c in _BYTES.decode(self.encoding, "ignore"))
        return f"[^{''.join(known)}]"


def _escaped(characters: Iterable[str]) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in characters)


def data_type(landed_type: str) -> str | None:
    """Return the `DataType` of `SchemaDefinition` for a Spark type; None if there is none."""
    return _DATA_TYPES.get(landed_type.partition("(")[0])
