"""The protocol of the driver in a Livy session: requests become code, printed text becomes rows.

`driver.py` is the other side.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import inspect
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import Row

from dbt.adapters.openmirroring.spark import errors, frames, python_models
from dbt.adapters.openmirroring.spark.livy import driver

_SOURCES = {
    module.__name__.rpartition(".")[2]: inspect.getsource(module)
    for module in (errors, frames, python_models, driver)
}

# The name has a hash of the sources, because different versions of dbt-openmirroring may share a
# Livy session.
_DRIVER = "openmirroring_" + hashlib.sha256(repr(_SOURCES).encode()).hexdigest()[:16]

# The code that starts the driver, once per Livy session.
START = f"""\
if {_DRIVER!r} not in globals():
    def {_DRIVER}():
        modules = {{}}
        for name, source in {_SOURCES!r}.items():
            modules[name] = {{"__name__": "openmirroring_" + name}}
            exec(compile(source, "<dbt-openmirroring " + name + ">", "exec"), modules[name])
        return modules["driver"]["Driver"](
            spark,
            modules["python_models"]["create_view"],
            modules["frames"]["spark_frame"],
            modules["errors"]["explained"],
        )
    {_DRIVER} = {_DRIVER}()
"""

# code that does nothing, to keep an idle session from being ended
KEEP_ALIVE = "None"


def forgetting(ended: Sequence[str]) -> str:
    """Return Python code that drops sessions which are not needed any more."""
    return f"{_DRIVER}.forget({list(ended)!r})"


class CutOffError(DbtRuntimeError):
    """An answer did not arrive completely."""


@dataclass(frozen=True)
class Request:
    """A request of a connection.

    Args:
        id: a unique id; the driver carries out each id only once
        session: the name of the connection's Spark session, which its first request opens
        settings: the settings of this session
        task: `sql`, or `model`, `view` and `node`
        ended: the names of sessions that are not needed any more
    """

    id: str
    session: str
    settings: Mapping[str, str]
    task: Mapping[str, str]
    ended: Sequence[str] = ()

    @property
    def code(self) -> str:
        """The Python code of the request. It contains the statement only as a string literal."""
        content = {
            "id": self.id,
            "session": self.session,
            "settings": dict(self.settings),
            "ended": list(self.ended),
            **self.task,
        }
        return f"{_DRIVER}.run({json.dumps(content)!r})"

    def code_of_piece(self, number: int) -> str:
        """Return Python code that prints another piece of the answer."""
        return f"{_DRIVER}.show({self.session!r}, {self.id!r}, {number})"

    def piece(self, number: int, printed: str) -> tuple[str, int]:
        """Return a piece of the answer, and the number of pieces.

        Args:
            number: the number of the piece, from 0
            printed: the text that the code has printed

        Raises:
            CutOffError: if the piece is missing or incomplete
        """
        head = f"openmirroring:{self.id}:{number}:"
        found = re.search(rf"{head}(\d+):([A-Za-z0-9+/=]*):end", printed)
        if not found:
            raise CutOffError(
                f"Livy's answer was cut off after {len(printed):,} characters. The statement was "
                "carried out. If it returns long rows, select less."
            )
        return found[2], int(found[1])


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


def decoded(value: Any) -> Any:
    """Decode a value that `driver.encoded` has encoded.

    Like PySpark, it returns timestamps in the local time of this process.

    Raises:
        KeyError, TypeError, ValueError: if the value was not encoded by that function
    """
    if not isinstance(value, list):
        return value
    kind, content = value
    match kind:
        case "decimal":
            return Decimal(content)
        case "timestamp":
            time = dt.datetime.fromisoformat(content)
            return time.astimezone().replace(tzinfo=None) if time.tzinfo else time
        case "date":
            return dt.date.fromisoformat(content)
        case "time":
            return dt.time.fromisoformat(content)
        case "interval":
            return dt.timedelta(*content)
        case "binary":
            return base64.b64decode(content)
        case "array":
            return [decoded(element) for element in content]
        case "map":
            return {decoded(key): decoded(item) for key, item in content}
        case "struct":
            return _row([name for name, _ in content], (decoded(part) for _, part in content))
        case "text":
            return content
    raise ValueError(f"{kind!r} is no kind of value")
