"""The part of `method: livy` that runs in the driver of a Livy session.

The adapter sends the source of this module to the session. So the module imports nothing but
PySpark. `session.py` is the other side.

Livy's own SQL returns at most 1,000 rows and no exact decimals. So statements are PySpark code.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import zlib
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

# maximum characters of an answer that are printed at once, because Livy keeps the outputs of the
# last hundred statements in memory
PIECE = 1_000_000


class Driver:
    """The Spark sessions of dbt's connections within one Livy session.

    Livy runs statements one after another, so no method is called concurrently.

    Args:
        spark: Livy's own Spark session
        create_view, explained: the functions of `python_models.py` and `errors.py`
    """

    def __init__(
        self,
        spark: SparkSession,
        create_view: Callable[..., None],
        explained: Callable[[Py4JJavaError], str],
    ) -> None:
        self._spark = spark
        self._create_view = create_view
        self._explained = explained
        self._sessions: dict[str, SparkSession] = {}
        self._answers: dict[str, tuple[str, list[str]]] = {}
        self._seen: set[str] = set()

    def run(self, text: str) -> None:
        """Carry out a request in JSON and print the answer. If it arrives again, only print."""
        request = json.loads(text)
        session, request_id = request["session"], request["id"]
        if request_id not in self._seen:
            self._seen.add(request_id)
            answer = zlib.compress(json.dumps(self._answer(request)).encode())
            text = base64.b64encode(answer).decode()
            pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
            self._answers[session] = request_id, pieces
        self.show(session, request_id, 0)

    def show(self, session: str, request_id: str, piece: int) -> None:
        """Print a piece of the answer to a request, unless a later one was answered."""
        answered, pieces = self._answers.get(session, ("", []))
        if answered == request_id:
            print(f"\nopenmirroring:{request_id}:{piece}:{len(pieces)}:{pieces[piece]}:end\n")

    def forget(self, ended: list[str]) -> None:
        """Drop sessions that are not needed any more, with their answers."""
        for name in ended:
            self._sessions.pop(name, None)
            self._answers.pop(name, None)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.forget(request["ended"])
        try:
            session = self._sessions.get(request["session"])
            if session is None:
                session = self._spark.newSession()
                for key, value in request["settings"].items():
                    session.conf.set(key, value)
                self._sessions[request["session"]] = session
            if "model" in request:
                self._create_view(request["view"], request["model"], session, request["node"])
                return {}
            result = session.sql(request["sql"])
            fields = result.schema.fields
            columns = [(each.name, each.dataType.simpleString(), each.nullable) for each in fields]
            rows = [
                [encoded(value, each.dataType) for value, each in zip(row, fields)]  # noqa: B905 - Python 3.9
                for row in result.collect()
            ]
        except Exception as error:
            text = self._explained(error) if isinstance(error, Py4JJavaError) else str(error)
            return {"error": text or type(error).__name__}
        return {"columns": columns, "rows": rows}


def encoded(value: Any, type_: DataType) -> Any:
    """Encode a value of PySpark for JSON, in which a timestamp is in the time of this process.

    NULL, numbers, booleans and strings stay as they are. Other values become [kind, content].
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, decimal.Decimal):
        return ["decimal", str(value)]
    if isinstance(value, dt.datetime):
        if isinstance(type_, TimestampType):
            value = value.astimezone(dt.timezone.utc)
        return ["timestamp", value.isoformat()]
    if isinstance(value, (dt.date, dt.time)):
        return ["date" if isinstance(value, dt.date) else "time", value.isoformat()]
    if isinstance(value, dt.timedelta):
        return ["interval", [value.days, value.seconds, value.microseconds]]
    if isinstance(value, (bytes, bytearray)):
        return ["binary", base64.b64encode(value).decode()]
    if isinstance(type_, ArrayType):
        return ["array", [encoded(element, type_.elementType) for element in value]]
    if isinstance(type_, MapType):
        entries = [
            [encoded(key, type_.keyType), encoded(item, type_.valueType)]
            for key, item in value.items()
        ]
        return ["map", entries]
    if isinstance(type_, StructType):
        fields = [
            [field.name, encoded(part, field.dataType)]
            for field, part in zip(type_.fields, value)  # noqa: B905 - Python 3.9
        ]
        return ["struct", fields]
    return ["text", str(value)]
