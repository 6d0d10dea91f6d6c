"""2. The plan of a batch: the definition of its table, and how its files are written and read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import (
    DelimitedText,
    MirroredColumn,
    TableDefinition,
    data_type,
)
from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.text.errors import RefusedError
from dbt.adapters.openmirroring.types.columns import LandingColumn

# A table of this many keys fits into the memory of every executor.
_BROADCAST_ROWS = 1_000_000

# why a table is rebuilt, whatever has changed
FULL_REFRESH = "--full-refresh"

# the charset for Spark's `encode`, where it differs from the encoding
_CHARSETS = {"ascii": "US-ASCII", "utf-16": "UTF-16LE", "windows-1252": "iso-8859-1"}

_BYTES = bytes(range(256))


def table_definition(columns: Sequence[LandingColumn], options: NodeConfig) -> TableDefinition:
    """Return the definition of a table with the columns of the next snapshot.

    Raises:
        CompilationError: if a column name cannot be mirrored, a key is not a column, or the
            landing format does not have the type of a column
    """
    names = _names(columns)
    missing = [key for key in options.unique_key if key.lower() not in names]
    if missing:
        raise RefusedError(
            f"`unique_key` names {', '.join(map(repr, missing))}, but the model has no such "
            f"column. It has: {', '.join(names.values())}.",
            code="OM210",
        )
    _check_landing_format(columns, options)
    return TableDefinition(
        columns=tuple(
            MirroredColumn(column.name, column.dtype, column.landed_type) for column in columns
        ),
        key_columns=tuple(names[key.lower()] for key in options.unique_key),
        landing_format=options.landing_format,
        delimited=options.delimited,
        file_detection=options.file_detection,
        default_row_marker=options.default_row_marker,
    )


def published_columns(definition: TableDefinition) -> list[LandingColumn]:
    """Return the columns of a snapshot as they were when it was published."""
    return [LandingColumn(c.name, c.type, c.landed_type) for c in definition.columns]


def _names(columns: Sequence[LandingColumn]) -> dict[str, str]:
    """Return the names of the columns, by the name in lower case."""
    names: dict[str, str] = {}
    for column in columns:
        if "\0" in column.name:
            raise CompilationError(
                f"The column {column.name!r} has a NUL in its name, and readers of Parquet cut "
                "the name there. Rename it in the model."
            )
        twin = names.setdefault(column.name.lower(), column.name)
        if twin != column.name:
            raise CompilationError(
                f"The columns {twin!r} and {column.name!r} differ only in case, and the service "
                "cannot tell them apart. Rename one of them in the model."
            )
    if ROW_MARKER.lower() in names:
        raise CompilationError(
            f"The column {names[ROW_MARKER.lower()]!r} has the name of the row marker, "
            "which the landing zone reserves. Rename it in the model."
        )
    if "_metadata" in names:
        raise CompilationError(
            f"The column {names['_metadata']!r} hides Spark's own column of that name. Rename it "
            "in the model."
        )
    return names


def _check_landing_format(columns: Sequence[LandingColumn], options: NodeConfig) -> None:
    """Check whether the landing format has the types of all columns.

    Source: specification, "Delimited text requirements". Delta has no type for a time of day.
    """
    for column in columns:
        if options.delimited and not data_type(column.landed_type):
            raise CompilationError(
                f"The column {column.quoted} has the type {column.dtype}, and delimited text has "
                f"no decimals. Cast it in the model: cast({column.quoted} as double), or "
                f"cast({column.quoted} as string) to keep all digits."
            )
        if options.delimited and column.dtype.startswith(("geometry", "geography")):
            raise CompilationError(
                f"The column {column.quoted} has the type {column.dtype}, whose bytes are not "
                f"text. Convert it in the model, e.g. base64(st_asbinary({column.quoted}))."
            )
        if column.landed_type.startswith("time(") and not options.delimited:
            raise CompilationError(
                f"The column {column.quoted} has the type {column.dtype}, which cannot be "
                f"mirrored from Parquet. Cast it in the model, e.g. cast({column.quoted} as "
                "string), or set `landing_format: csv`."
            )
    if options.delimited and len(columns) == 1 and not options.delimited.null_value:
        raise CompilationError(
            f"The model has one column, {columns[0].quoted}, so that a line that is NULL would be "
            "empty, and not be read. Set another `delimited.null_value`, e.g. null."
        )


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
            table_rows: its rows; those of this batch, if it has no more than `target_bytes`

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
