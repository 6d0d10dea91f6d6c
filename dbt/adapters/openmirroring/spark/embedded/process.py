"""The embedded Spark of this process, which keeps running between commands.

A process can have only one Spark, because PySpark stores it in a class attribute. So it belongs to
the process, and not to the connections of one command.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from pyspark import SparkContext
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.spark.embedded import start as embedded_spark
from dbt.adapters.openmirroring.spark.embedded.java_image import (
    NO_IMAGES,
    JavaImage,
    JavaImageError,
    images_folder,
)
from dbt.adapters.openmirroring.spark.embedded.place import SparkPlaceError
from dbt.adapters.openmirroring.spark.embedded.running_commands import RunningCommands
from dbt.adapters.openmirroring.spark.embedded.start import SparkSetup
from dbt.adapters.openmirroring.spark.embedded.submit import end_jvm


@dataclass(frozen=True)
class _Started:
    """A started embedded Spark.

    Args:
        java_home: the home of its Java
        session: the session from which each node gets a new one
        gateway: the gateway to the JVM, which outlives a stopped session
    """

    setup: SparkSetup
    java_home: Path
    session: SparkSession
    gateway: Any

    @property
    def is_running(self) -> bool:
        return SparkContext._active_spark_context is self.session.sparkContext


class ProcessSpark:
    """The owner of the embedded Spark. It starts Spark, and records which commands use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: _Started | None = None
        self._image: JavaImage | None = None
        self._is_image_ordered = False
        self._running: RunningCommands | None = None
        self._failed_early: WeakKeyDictionary[Any, Exception] = WeakKeyDictionary()
        self._commands: WeakSet[Any] = WeakSet()

    @property
    def is_running(self) -> bool:
        """Whether this process runs an embedded Spark. Waits for one that is still starting."""
        with self._lock:
            return self._started is not None and self._started.is_running

    def start_early(
        self, command: object, setup: SparkSetup, java_options: Sequence[str] = ()
    ) -> None:
        """Start a Spark in the background. `session` waits for it.

        If the start fails, `session` raises the error for the same command. A later command starts
        Spark again.

        Args:
            java_options: additional Java options of a prepared start
        """

        def start() -> None:
            with self._lock:
                try:
                    self._fitting(setup, java_options)
                except Exception as error:
                    self._failed_early[command] = error

        # a daemon, because dbt may end before Spark has started and must not wait for it
        threading.Thread(target=start, name="embedded Spark", daemon=True).start()

    def session(self, command: object, setup: SparkSetup) -> SparkSession:
        """Return the session of a Spark. Reuse the Spark of an earlier command if it fits.

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

    def _fitting(self, setup: SparkSetup, java_options: Sequence[str] = ()) -> _Started:
        embedded_spark.check_system()
        images = images_folder() if setup.prepared_start else None
        if images and self._running is None:
            self._running = RunningCommands(images)
        if self._running:
            self._running.enter()
        found = self._started
        if found and found.is_running and found.setup == setup:
            return found
        self._end()
        java_home = embedded_spark.java_home_for(setup)
        image = self._image = JavaImage(java_home, images) if images else None
        options = [*(image.options() if image else ()), *java_options]
        try:
            session = embedded_spark.start(setup, java_home, options)
        except (embedded_spark.SparkInUseError, SparkPlaceError):
            raise
        except FailedToConnectError:
            if not options:
                raise
            session = embedded_spark.start(setup, java_home)
            if image:
                image.remove()  # it may be corrupt in a part that Java does not check
        self._started = _Started(setup, java_home, session, SparkContext._gateway)
        return self._started

    def release(self, command: object) -> None:
        """Record that a command has ended. Spark keeps running, because a start takes seconds.

        The first call may have a missing image of the classes made. If Spark is still starting,
        this method does not wait: the command has failed before it used Spark.
        """
        self._commands.discard(command)
        if not self._lock.acquire(blocking=False):
            return
        try:
            is_ordered, self._is_image_ordered = self._is_image_ordered, True
            if self._image and not is_ordered and self._image.is_wanted:
                self._image.prepare()
            if self._running and not self._commands:
                self._running.leave()
        finally:
            self._lock.release()

    def print_java(self, prepared_start: bool) -> None:
        """Print for `dbt debug` what the embedded Spark uses, if this process has one.

        Args:
            prepared_start: as for `session`
        """
        started = self._started
        if started is None:
            return
        lines = [f"has its files in {started.setup.home}", f"uses the Java in {started.java_home}"]
        if prepared_start:
            lines.append(self._image.description if self._image else NO_IMAGES)
        for line in lines:
            fire_event(Note(msg=f"  Embedded Spark {line}"))

    def end(self) -> None:
        """Stop the embedded Spark, so that this process can start another one.

        Raises:
            FailedToConnectError: if a command uses it
        """
        with self._lock:
            self._end()

    def _end(self) -> None:
        started = self._started
        if started is None:
            return
        if self._commands and started.is_running:
            raise FailedToConnectError(
                "Another dbt command of this process uses the embedded Spark of "
                f"{started.setup.project}, and a process can have one Spark at a time. Wait until "
                "that command has ended, or run this one in a process of its own."
            )
        self._started = None
        self._commands.clear()
        if started.is_running:
            started.session.stop()
        end_jvm(started.gateway)


process_spark = ProcessSpark()


def prepare_image(setup: SparkSetup) -> str:
    """Make the image that an embedded Spark starts from, unless it is there.

    Returns:
        a line about the image

    Raises:
        FailedToConnectError: if there is no Java, or Spark's folder cannot be written
        JavaImageError: if the image cannot be made
    """
    images = images_folder()
    if not images:
        raise JavaImageError(f"The embedded Spark {NO_IMAGES}")
    image = JavaImage(embedded_spark.java_home_for(setup), images)
    image.make_now()
    return f"Embedded Spark {image.description}"
