"""Delimited text: how its files are spelled (specification, "Delimited text requirements")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

# landing formats, which are also file extensions, and their column separators
COLUMN_SEPARATORS = {"csv": ",", "tsv": "\t", "psv": "|"}

# what the specification allows; an encoding of its "wide range" must also be one of Spark's
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

# Spark's types as those of `SchemaDefinition`; there is none for a decimal
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

# the encodings that Spark's `encode` does not know by the same name
_CHARSETS = {"ascii": "US-ASCII", "utf-16": "UTF-16LE", "windows-1252": "iso-8859-1"}

_BYTES = bytes(range(256))


@dataclass(frozen=True)
class DelimitedText:
    """How a table's files are spelled: the `FileFormatTypeProperties` of `_metadata.json`.

    Args:
        column_separator, row_separator, quote_character: between and around values
        escape_character: before a quote in a quoted value, and before itself
        null_value: what NULL is; a value is never NULL if it is quoted
        encoding: one of those in ALLOWED
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
        """The encoding for Spark's `encode`; None for UTF-8, as which it has its strings."""
        if self.encoding == "UTF-8":
            return None
        return _CHARSETS.get(self.encoding, self.encoding)

    @property
    def reader_charset(self) -> str:
        """The encoding for Spark's reader, which takes away a byte order mark of UTF-16 only."""
        return "UTF-16" if self.byte_order_mark else self.charset or "UTF-8"

    @property
    def byte_order_mark(self) -> str:
        """What a file begins with, in hexadecimal digits."""
        return "FFFE" if self.encoding == "utf-16" else ""

    @property
    def encoded_row_separator(self) -> str:
        """The row separator as bytes, each as the character with its number."""
        return self.row_separator.encode(self.charset or "ascii").decode("latin-1")

    @cached_property
    def translation(self) -> tuple[str, str] | None:
        """Characters, and those in whose places Spark's charset has them, escaped for SQL."""
        if self.encoding != "windows-1252":
            return None
        places = [
            n for n in _BYTES if bytes([n]).decode(self.encoding, "ignore") not in ("", chr(n))
        ]
        return _escaped(bytes(places).decode(self.encoding)), _escaped(map(chr, places))

    @cached_property
    def unencodable(self) -> str:
        """A regular expression for characters that the encoding does not have; empty if none."""
        if self.encoding.lower().startswith("utf"):
            return ""
        known = (f"\\x{{{ord(c):x}}}" for c in _BYTES.decode(self.encoding, "ignore"))
        return f"[^{''.join(known)}]"


def _escaped(characters: Iterable[str]) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in characters)


def data_type(landed_type: str) -> str | None:
    """A type of Spark as one of `SchemaDefinition`; None if delimited text has none for it."""
    return _DATA_TYPES.get(landed_type.partition("(")[0])
