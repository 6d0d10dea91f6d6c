"""A dbt connection to Spark through Livy: requests become code, printed text becomes rows.

`driver.py` is the other side.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import re
import threading
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.sql import Row

from dbt.adapters.openmirroring.spark.livy.session import DRIVER, LivySession, SessionEndedError
from dbt.adapters.openmirroring.spark.session import SessionHandle


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


class LivyHandle(SessionHandle):
    """A dbt connection.

    Args:
        livy: the Livy session of the command
        settings: the settings of the connection's Spark session
    """

    def __init__(self, livy: LivySession, settings: Mapping[str, str]) -> None:
        self._livy = livy
        self._settings = settings
        self._name = uuid.uuid4().hex
        self._session: str | None = None
        self._cancelled = threading.Event()
        self._answer = Answer()

    def run(self, sql: str) -> None:
        self._answer = Answer()
        answer = self._ask(sql=sql)
        if answer.error:
            raise DbtDatabaseError(answer.error)
        self._answer = answer

    def create_view(self, name: str, code: str, node: str) -> None:
        answer = self._ask(model=code, view=name, node=node)
        if answer.error:
            raise DbtRuntimeError(answer.error)

    def _ask(self, **task: str) -> Answer:
        """Send a task to the driver, which runs it in the Spark session of this connection.

        Raises:
            SessionEndedError: if the Livy session has ended; the next request opens a new one
            CutOffError: if the answer does not arrive completely
        """
        try:
            self._session = self._livy.session(self._cancelled, self._session)
            request = uuid.uuid4().hex
            content = {
                "id": request,
                "session": self._name,
                "settings": dict(self._settings),
                "ended": self._livy.ended_connections(),
                **task,
            }
            # the code contains the statement only as a string literal
            code = f"{DRIVER}.run({json.dumps(content)!r})"
            pieces: list[str] = []
            while True:
                printed = self._livy.run(self._session, code, self._cancelled)
                head = f"openmirroring:{request}:{len(pieces)}:"
                found = re.search(rf"{head}(\d+):([A-Za-z0-9+/=]*):end", printed)
                if not found:
                    raise CutOffError(
                        f"Livy's answer was cut off after {len(printed):,} characters. The "
                        "statement was carried out. If it returns long rows, select less."
                    )
                pieces.append(found[2])
                if len(pieces) >= int(found[1]):
                    return Answer.parse(pieces)
                code = f"{DRIVER}.show({self._name!r}, {request!r}, {len(pieces)})"
        except SessionEndedError:
            self._session = None
            raise

    @property
    def description(self) -> Sequence[tuple[Any, ...]]:
        return [(*described, *[None] * 4, null) for *described, null in self._answer.columns]

    def fetchall(self) -> list[Row]:
        return list(self._answer.rows)

    def fetchmany(self, size: int) -> list[Row]:
        return list(self._answer.rows[:size])

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._answer = Answer()
        if self._session is not None:
            self._livy.connection_ended(self._name)


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
    """Decode a value that `driver.encoded` has encoded.

    Raises:
        KeyError, TypeError, ValueError: if the value was not encoded by that function
    """
    if not isinstance(value, list):
        return value
    kind, content = value
    return _DECODERS[kind](content)
