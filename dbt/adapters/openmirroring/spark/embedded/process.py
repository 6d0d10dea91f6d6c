"""The embedded Spark of this process.

A process can have only one Spark, because PySpark stores it in a class attribute. So it belongs to
the process, and commands that run at the same time share it. Between commands the process has
none.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtDatabaseError
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.spark.embedded import start as embedded_spark
from dbt.adapters.openmirroring.spark.embedded.keeper import RECORD
from dbt.adapters.openmirroring.spark.embedded.start import EmbeddedSpark, SparkSetup

# the seconds for which a command that has failed waits for the start of a Spark that was ready
_START_OF_READY_SPARK = 5.0


class ProcessSpark:
    """The owner of the embedded Spark. It starts Spark, and records which commands use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spark: EmbeddedSpark | None = None
        self._failed_early: WeakKeyDictionary[Any, Exception] = WeakKeyDictionary()
        self._commands: WeakSet[Any] = WeakSet()
        self._patience = 0.0

    @property
    def is_running(self) -> bool:
        """Whether this process runs an embedded Spark. Waits for one that is still starting."""
        with self._lock:
            return self._spark is not None and self._spark.is_running

    def start_early(self, command: object, setup: SparkSetup) -> None:
        """Start a Spark in the background. `session` waits for it.

        If the start fails, `session` raises the error for the same command. A later command starts
        Spark again.
        """
        self._commands.add(command)
        is_ready = (setup.home / RECORD).exists()
        self._patience = _START_OF_READY_SPARK if is_ready else 0.0

        def start() -> None:
            with self._lock:
                try:
                    self._fitting(setup)
                except Exception as error:
                    self._failed_early[command] = error
            self._give_back_unused()  # the command may have failed meanwhile

        # a daemon, because dbt may end before Spark has started and must not wait for it
        threading.Thread(target=start, name="embedded Spark", daemon=True).start()

    def session(self, command: object, setup: SparkSetup) -> SparkSession:
        """Return the session of a Spark, which is shared with other commands that run.

        Args:
            command: the command, which uses the session until it calls `release`

        Raises:
            FailedToConnectError: if Spark does not start, or if another command uses a Spark of
                another project or with other settings
        """
        with self._lock:
            failed = self._failed_early.pop(command, None)
            if failed:
                raise failed
            found = self._fitting(setup)
            self._commands.add(command)
            return found.session

    def _fitting(self, setup: SparkSetup) -> EmbeddedSpark:
        embedded_spark.check_system()
        found = self._spark
        if found and found.is_running:
            if found.setup == setup:
                return found
            raise FailedToConnectError(
                "Another dbt command of this process uses the embedded Spark of "
                f"{found.setup.project}, and a process can have one Spark at a time. Wait until "
                "that command has ended, or run this one in a process of its own."
            )
        self._give_back()
        self._spark = embedded_spark.start(setup)
        return self._spark

    def release(self, command: object) -> None:
        """Record that a command has ended. The last one returns the JVM.

        If a new JVM is still starting, this method does not wait: the command has failed before
        it used Spark. A JVM that was ready would be lost if the process ended now.
        """
        self._commands.discard(command)
        self._give_back_unused()

    def _give_back_unused(self) -> None:
        if not self._commands and self._lock.acquire(timeout=self._patience):
            try:
                if not self._commands:
                    self._give_back()
            finally:
                self._lock.release()

    def _give_back(self) -> None:
        found, self._spark = self._spark, None
        if found:
            found.give_back()

    def check_alive(self, seconds: float) -> None:
        """Check that the JVM of the embedded Spark has not ended.

        Args:
            seconds: how long to wait until its keeper has noticed

        Raises:
            DbtDatabaseError: if it has
        """
        spark = self._spark
        if spark and spark.lease.has_ended(seconds):
            raise DbtDatabaseError(
                "Spark has ended while it was in use: somebody has stopped its process, or the "
                f"machine had no memory left. Its log is {spark.setup.home}/spark.log. Run again; "
                "the next run continues from what was published."
            )

    def print_state(self) -> None:
        """Print for `dbt debug` what the embedded Spark uses, if this process has one."""
        if self._spark:
            for line in self._spark.described():
                fire_event(Note(msg=f"  Embedded Spark {line}"))


process_spark = ProcessSpark()
