"""4. Delimited text as Spark writes it, and reads it back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property

from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText

# the charset for Spark's `encode`, where it differs from the encoding
_CHARSETS = {"ascii": "US-ASCII", "utf-16": "UTF-16LE", "windows-1252": "iso-8859-1"}

_BYTES = bytes(range(256))


@dataclass(frozen=True)
class TextFiles(DelimitedText):
    """The options of delimited text, with those that Spark needs to write and read it."""

    @classmethod
    def of(cls, options: DelimitedText | None) -> TextFiles | None:
        """Return what Spark needs for the files of a table; None for Parquet."""
        return cls(**asdict(options)) if options else None

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
