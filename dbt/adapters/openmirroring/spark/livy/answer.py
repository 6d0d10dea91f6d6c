"""Answers of the driver in a Livy session, with values as PySpark has them."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import Row


class CutOffError(DbtRuntimeError):
    """An answer did not arrive completely."""


@dataclass(frozen=True)
class Answer:
    """The answer of the driver.

    Args:
        columns: for each column its name, its type and whether it can be NULL
        rows: the rows, as PySpark returns them
        error: the error of Spark or of a Python model; empty if there is none
    """

    columns: tuple[tuple[str, str, bool], ...] = ()
    rows: tuple[Row, ...] = ()
    error: str = ""

    @classmethod
    def parse(cls, pieces: Sequence[str]) -> Answer:
        """Read an answer from its pieces.

        Raises:
            CutOffError: if it cannot be read
        """
        try:
            content: Any = json.loads(zlib.decompress(base64.b64decode("".join(pieces))))
            described = content.get("columns", ())
            columns = tuple((str(name), str(type_), bool(null)) for name, type_, null in described)
            names = [name for name, _, _ in columns]
            rows = tuple(_row(names, map(decoded, row)) for row in content.get("rows", ()))
        except (ValueError, TypeError, AttributeError, KeyError, binascii.Error, zlib.error):
            raise CutOffError(
                "Livy's answer cannot be read. The statement was carried out."
            ) from None
        return cls(columns, rows, str(content.get("error", "")))


def _row(names: Sequence[str], values: Iterable[Any]) -> Row:
    row: Row = Row(*names)(*values) if names else Row()
    return row


def _time(text: str) -> dt.datetime:
    """Return a timestamp, like PySpark in the local time of this process."""
    time = dt.datetime.fromisoformat(text)
    return time.astimezone().replace(tzinfo=None) if time.tzinfo else time


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "timestamp": _time,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "interval": lambda parts: dt.timedelta(*parts),
    "binary": base64.b64decode,
    "array": lambda elements: [decoded(element) for element in elements],
    "map": lambda entries: {decoded(key): decoded(item) for key, item in entries},
    "struct": lambda fields: _row(
        [name for name, _ in fields], (decoded(part) for _, part in fields)
    ),
    "text": str,
}


def decoded(value: Any) -> Any:
    """Decode a value that `driver.encoded` has encoded."""
    if not isinstance(value, list):
        return value
    kind, content = value
    return _DECODERS[kind](content)
