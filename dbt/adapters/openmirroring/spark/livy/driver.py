"""The part of `method: livy` that runs in the driver of a Livy session.

The adapter sends the source of this module to the session. So the module imports nothing but
PySpark. `session.py` is the other side.

Livy's own SQL returns at most 1,000 rows and no exact decimals. So statements are PySpark code.
"""

from __future__ import annotations

import base64
import decimal
import json
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

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
        self._results: dict[str, DataFrame] = {}
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
            self._results.pop(name, None)
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
            if "select" in request:
                select = request["select"]
                result = self._results.pop(request["session"]).toDF(*select)
                return {"rows": rows_for_json(result.selectExpr(*select.values()).collect())}
            result = session.sql(request["sql"])
            fields = result.schema.fields
            columns = [(each.name, each.dataType.simpleString(), each.nullable) for each in fields]
            if all(re.fullmatch(request["as_they_are"], dtype) for _, dtype, _ in columns):
                return {"columns": columns, "rows": rows_for_json(result.collect())}
            self._results[request["session"]] = result
            return {"columns": columns, "rows": None}
        except Exception as error:
            text = self._explained(error) if isinstance(error, Py4JJavaError) else str(error)
            return {"error": text or type(error).__name__}


def rows_for_json(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return rows for JSON, in which a decimal is a text in a list."""
    return [
        [[str(value)] if isinstance(value, decimal.Decimal) else value for value in row]
        for row in rows
    ]
