"""A dbt connection to Spark through Livy."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.sql import Row

from dbt.adapters.openmirroring.spark.livy.protocol import Answer, Request
from dbt.adapters.openmirroring.spark.livy.session import LivySession, SessionEndedError
from dbt.adapters.openmirroring.spark.session import SessionHandle


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
        answer = self._ask({"sql": sql})
        if answer.error:
            raise DbtDatabaseError(answer.error)
        self._answer = answer

    def create_view(self, name: str, code: str, node: str) -> None:
        answer = self._ask({"model": code, "view": name, "node": node})
        if answer.error:
            raise DbtRuntimeError(answer.error)

    def _ask(self, task: Mapping[str, str]) -> Answer:
        """Send a task to the driver, which runs it in the Spark session of this connection.

        Raises:
            SessionEndedError: if the Livy session has ended; the next request opens a new one
        """
        try:
            self._session = self._livy.session(self._cancelled, self._session)
            request = Request(
                id=uuid.uuid4().hex,
                session=self._name,
                settings=self._settings,
                task=task,
                ended=self._livy.ended_connections(),
            )
            return self._livy.run(self._session, request, self._cancelled)
        except SessionEndedError:
            self._session = None
            raise

    @property
    def columns(self) -> Sequence[tuple[str, str, bool]]:
        return self._answer.columns

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
