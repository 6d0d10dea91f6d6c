"""Starting the embedded Spark of a process, with and without an image of its classes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError
from pyspark import SparkContext

from dbt.adapters.openmirroring.spark.embedded import process
from dbt.adapters.openmirroring.spark.embedded import start as embedded
from dbt.adapters.openmirroring.spark.embedded.java_image import JavaImage
from dbt.adapters.openmirroring.spark.embedded.process import ProcessSpark
from dbt.adapters.openmirroring.spark.embedded.running_commands import (
    RunningCommands,
    StillRunningError,
)
from dbt.adapters.openmirroring.spark.embedded.start import SparkInUseError, SparkSetup
from tests.unit.spark.test_java_image import write_image

SHOP = SparkSetup(Path("shop"), {}, prepared_start=True)
OPTION = "-XX:SharedArchiveFile="


class Starts:
    """Spark's starts, with the options of Java that each got."""

    def __init__(self, *errors: FailedToConnectError | None) -> None:
        self.options: list[list[str]] = []
        self._errors = list(errors)

    def start(self, setup: SparkSetup, java: Path, options: Sequence[str] = ()) -> object:
        self.options.append([option.partition("=")[0] + "=" for option in options])
        error = self._errors.pop(0)
        if error:
            raise error
        return Session()


class Session:
    """One of the Spark that runs in this process, if one does."""

    @property
    def sparkContext(self) -> SparkContext | None:
        return SparkContext._active_spark_context

    def sql(self, _: str) -> Session:
        return self

    def collect(self) -> list[object]:
        return []


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JavaImage:
    """An image that Java can start from."""
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.15"\n')
    made = JavaImage(tmp_path, tmp_path)
    made.make(lambda _, options: write_image(options))
    monkeypatch.setattr(embedded, "java_home_for", lambda *_: tmp_path)
    monkeypatch.setattr(process, "images_folder", lambda: tmp_path)
    monkeypatch.setattr(process, "JavaImage", lambda *_: made)
    return made


def start(starts: Starts, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(embedded, "start", starts.start)
    return ProcessSpark().session(starts, SHOP)


def test_spark_starts_from_an_image(image: JavaImage, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(None)

    start(starts, monkeypatch)

    assert starts.options == [[OPTION]]
    assert image.is_there


def test_an_image_that_java_cannot_start_from_is_removed(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(FailedToConnectError("crashed"), None)

    start(starts, monkeypatch)

    assert starts.options == [[OPTION], []]
    assert not image.is_there


def test_a_java_that_refuses_an_option_starts_without_it(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, spark = Starts(FailedToConnectError("unrecognized option"), None), ProcessSpark()
    monkeypatch.setattr(embedded, "start", starts.start)
    image.remove()

    spark.start_early(starts, SHOP, ["-XX:TieredStopAtLevel=1"])
    spark.session(starts, SHOP)

    assert starts.options == [["-XX:TieredStopAtLevel="], []]


def test_an_image_is_kept_if_spark_does_not_start_without_it_either(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(FailedToConnectError("crashed"), FailedToConnectError("no such setting"))

    with pytest.raises(FailedToConnectError, match="no such setting"):
        start(starts, monkeypatch)

    assert image.is_there


def test_nobody_waits_twice_for_another_process(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(SparkInUseError("in use"))

    with pytest.raises(SparkInUseError):
        start(starts, monkeypatch)

    assert len(starts.options) == 1


def test_a_command_gets_the_spark_that_has_started_in_the_background(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, spark = Starts(None), ProcessSpark()
    monkeypatch.setattr(embedded, "start", starts.start)

    spark.start_early(starts, SHOP)
    session = spark.session(starts, SHOP)

    assert isinstance(session, Session)
    assert starts.options == [[OPTION]]


def test_a_command_fails_with_the_error_of_the_start_in_the_background(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, spark = Starts(SparkInUseError("in use")), ProcessSpark()
    monkeypatch.setattr(embedded, "start", starts.start)
    spark.start_early(starts, SHOP)

    with pytest.raises(SparkInUseError, match="in use"):
        spark.session(starts, SHOP)

    assert len(starts.options) == 1


def test_a_command_does_not_fail_with_the_error_of_an_earlier_one(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, spark = Starts(SparkInUseError("in use"), None), ProcessSpark()
    command, later = Starts(), Starts()
    monkeypatch.setattr(embedded, "start", starts.start)
    spark.start_early(command, SHOP)
    while not starts.options:
        time.sleep(0.01)
    assert not spark.is_running  # waits until the start has failed
    spark.release(command)  # the command has failed before it used Spark

    session = spark.session(later, SparkSetup(Path("other"), {}, prepared_start=True))

    assert isinstance(session, Session)


def test_a_command_that_fails_at_once_does_not_wait_for_spark(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, starts, is_released = ProcessSpark(), threading.Event(), threading.Event()

    def start(*_: object) -> Session:
        starts.set()
        assert is_released.wait(60), "the end of the command waits for this start"
        return Session()

    monkeypatch.setattr(embedded, "start", start)
    spark.start_early(start, SHOP)
    assert starts.wait(60)

    spark.release(start)
    is_released.set()

    assert isinstance(spark.session(start, SHOP), Session)


def test_an_image_is_made_when_no_command_runs(
    image: JavaImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "start", Starts(None).start)
    spark, commands, maker = ProcessSpark(), [Starts(), Starts()], RunningCommands(tmp_path)
    for command in commands:
        spark.session(command, SHOP)

    for command in commands:
        with pytest.raises(StillRunningError):
            maker.wait(0)
        spark.release(command)
    maker.wait(0)


def test_without_a_folder_for_images_spark_starts_as_it_is(
    image: JavaImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(None)
    monkeypatch.setattr(process, "images_folder", lambda: None)

    start(starts, monkeypatch)

    assert starts.options == [[]]
