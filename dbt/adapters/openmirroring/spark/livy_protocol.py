"""Requests to the driver of a Livy session as code, and what it prints as rows.

`livy_driver.py` is the other side.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import Row

from dbt.adapters.openmirroring.spark import errors, livy_driver, python_models

_SOURCES = {
    module.__name__.rpartition(".")[2]: inspect.getsource(module)
    for module in (errors, python_models, livy_driver)
}

# another version of dbt-openmirroring, which shares the Livy session, has another name
_DRIVER = "openmirroring_" + hashlib.sha256(repr(_SOURCES).encode()).hexdigest()[:16]

# What starts the driver, once in a Livy session.
START = f"""\
if {_DRIVER!r} not in globals():
    def {_DRIVER}():
        modules = {{}}
        for name, source in {_SOURCES!r}.items():
            modules[name] = {{"__name__": "openmirroring_" + name}}
            exec(compile(source, "<dbt-openmirroring " + name + ">", "exec"), modules[name])
        return modules["livy_driver"]["Driver"](
            spark, modules["python_models"]["create_view"], modules["errors"]["explained"]
        )
    {_DRIVER} = {_DRIVER}()
"""

# does nothing but keep a session from being ended because it is idle
KEEP_ALIVE = "None"


class CutOffError(DbtRuntimeError):
    """An answer did not arrive whole."""


@dataclass(frozen=True)
class Request:
    """A request of a connection.

    Args:
        id: unique; the driver carries out what it gets twice only once
        session: of the connection; it is opened with its first request
        settings: of this session
        task: `sql`, or `model`, `view` and `node`
        ended: sessions that are not needed any more
    """

    id: str
    session: str
    settings: Mapping[str, str]
    task: Mapping[str, str]
    ended: Sequence[str] = ()

    @property
    def code(self) -> str:
        """Python code that carries it out. The statement is data in it, whatever it contains."""
        content = {
            "id": self.id,
            "session": self.session,
            "settings": dict(self.settings),
            "ended": list(self.ended),
            **self.task,
        }
        return f"{_DRIVER}.run({json.dumps(content)!r})"

    def code_of_piece(self, number: int) -> str:
        """Python code that prints another piece of the answer."""
        return f"{_DRIVER}.show({self.session!r}, {self.id!r}, {number})"

    def piece(self, number: int, printed: str) -> tuple[str, int]:
        """A piece of the answer, and how many there are.

        Args:
            number: of the piece, from 0
            printed: by the code

        Raises:
            CutOffError: it is not there, or not whole
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
        columns: name, type and whether it can be NULL
        rows: as PySpark has them
        error: of Spark or of a Python model; empty without one
        error_class: the name of its class in Python
    """

    columns: tuple[tuple[str, str, bool], ...] = ()
    rows: tuple[Row, ...] = ()
    error: str = ""
    error_class: str = ""

    @classmethod
    def parse(cls, pieces: Sequence[str]) -> Answer:
        """Read an answer.

        Raises:
            CutOffError: it cannot be read
        """
        try:
            content = json.loads(zlib.decompress(base64.b64decode("".join(pieces))))
            columns = tuple((str(name), str(type_), bool(n)) for name, type_, n in _of(content))
            names = [name for name, _, _ in columns]
            rows = tuple(
                _row(names, [decoded(value) for value in row]) for row in content.get("rows", ())
            )
        except (ValueError, TypeError, AttributeError, KeyError, binascii.Error, zlib.error):
            raise CutOffError(
                "Livy's answer cannot be read. The statement was carried out."
            ) from None
        return cls(columns, rows, str(content.get("error", "")), str(content.get("class", "")))


def _of(content: Mapping[str, Any]) -> Sequence[Any]:
    found: Sequence[Any] = content.get("columns", ())
    return found


def _row(names: Sequence[str], values: Sequence[Any]) -> Row:
    row: Row = Row(*names)(*values) if names else Row()
    return row


def decoded(value: Any) -> Any:
    """A value as PySpark has it; `livy_driver.encoded` is the opposite.

    Timestamps come back in the local time of this process, as those of PySpark do.

    Raises:
        KeyError, TypeError, ValueError: it is no such value
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
            return _row([name for name, _ in content], [decoded(part) for _, part in content])
        case "text":
            return content
    raise ValueError(f"{kind!r} is no kind of value")
