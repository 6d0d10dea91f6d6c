"""2. The plan of a batch, with what Spark needs to write its files and to read them back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil

from dbt.adapters.openmirroring.landing_zone.batch import DelimitedText
from dbt.adapters.openmirroring.landing_zone.plan import Plan

# A table of this many keys fits into the memory of every executor.
_BROADCAST_ROWS = 1_000_000

# why a table is rebuilt, whatever has changed
FULL_REFRESH = "--full-refresh"

# the charset for Spark's `encode`, where it differs from the encoding
_CHARSETS = {"ascii": "US-ASCII", "utf-16": "UTF-16LE", "windows-1252": "iso-8859-1"}

_BYTES = bytes(range(256))


@dataclass(frozen=True)
class TextFiles(DelimitedText):
    """The options of delimited text, with those that Spark needs to write and read it."""

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


@dataclass(frozen=True)
class SparkPlan(Plan):
    """The plan of a batch whose files Spark writes.

    Args:
        changed: the SQL of a relation with the changed keys; None if nothing was compared
        in_full: whether `changed` has the new rows too
    """

    changed: str | None = None
    in_full: bool = False

    @cached_property
    def text(self) -> TextFiles | None:
        """How delimited text is written; None for Parquet."""
        options = self.definition.delimited
        return TextFiles(**asdict(options)) if options else None

    @property
    def is_small(self) -> bool:
        """Whether the changed keys are few enough to send them to every executor."""
        return self.row_count <= _BROADCAST_ROWS

    def files(self, table_bytes: int, table_rows: int, target_bytes: int) -> tuple[int, int]:
        """Choose the number of files, so that each has about the target size.

        Args:
            table_bytes: the size of the next snapshot
            table_rows: the rows of the next snapshot; the rows of this batch, if the next snapshot
                has no more than `target_bytes`
            target_bytes: the target size of a file

        Returns:
            the number of files that Spark should write, and the number of rows after which it
            begins another file; 0 for no limit
        """
        count = ceil(table_bytes * self.row_count / table_rows / target_bytes) if table_rows else 1
        count = max(1, count)
        # partitions differ in size, so leave a margin before Spark begins another file
        return count, ceil(1.25 * self.row_count / count) if count > 1 else 0


def _escaped(characters: Iterable[str]) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in characters)
