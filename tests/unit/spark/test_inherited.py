"""A JVM is used again only if the next command would pass on the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.embedded.settings import inherited, variables


class Place:
    """What a command passes on to Spark."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.monkeypatch = path, monkeypatch
        self.settings = {
            "spark.jars": f"file:{path}/a.jar,b.jar",
            "options": f"-Xlog:gc:file={path}/gc.log",
            "secret": "s3cret",
        }
        for file in ("a.jar", "gc.log", "conf/hive-site.xml", "java/release", "spark/tmp/x"):
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            self.write(file, "1")
        self.setenv("HADOOP_CONF_DIR", str(path / "conf"))
        self.setenv("TERM", "xterm")

    def write(self, file: str, text: str) -> None:
        (self.path / file).write_text(text)

    def setenv(self, name: str, value: str = "another") -> None:
        self.monkeypatch.setenv(name, value)

    def move(self, folder: str) -> None:
        (self.path / folder).rename(self.path / "moved")
        (self.path / "spark" / "tmp").mkdir(parents=True, exist_ok=True)

    def found(self) -> dict[str, str]:
        return inherited(self.path / "spark", self.settings, self.path / "java", variables()[0])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


OF_TASKS = ("TERM", "SHLVL", "GITHUB_STEP_SUMMARY", "AIRFLOW_CTX_DAG_RUN_ID", "DBT_TARGET")
OF_JAVA = ("PATH", "AWS_SECRET_ACCESS_KEY", "SHOP", "TZ", "TERMS")

# by name: what is done, and the name under which that differs, or nothing
CHANGES: dict[str, tuple[Callable[[Place], object], str]] = {
    **{name: (partial(Place.setenv, name=name), "") for name in OF_TASKS},
    **{name: (partial(Place.setenv, name=name), f"variable {name}") for name in OF_JAVA},
    "a log": (lambda place: place.write("gc.log", "12"), ""),
    "a jar": (lambda place: place.write("a.jar", "12"), "files of settings"),
    "a setting": (lambda place: place.settings.update(secret=""), "setting secret"),
    "configuration": (lambda place: place.write("conf/core-site.xml", ""), "files of settings"),
    "another folder": (lambda place: place.move("spark"), "folder of Spark"),
    "another folder in it": (lambda place: place.move("spark/tmp"), "folder of Spark"),
    "another Java": (lambda place: place.write("java/release", "21.0"), "Java"),
    "working directory": (lambda place: place.monkeypatch.chdir(place.path), "working directory"),
    "permissions of new files": (lambda place: os.umask(0o007), "limits"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_java_reads_differs_and_nothing_else(place: Place, change: str) -> None:
    before = place.found()
    made, told = CHANGES[change]
    umask = os.umask(0o022)
    os.umask(umask)
    try:
        made(place)
        found = place.found()
    finally:
        os.umask(umask)

    assert {name for name in {*before, *found} if before.get(name) != found.get(name)} == (
        {told} if told else set()
    )
    assert "TERM" in variables()[1]


def test_no_value_is_passed_on_that_could_be_a_secret(place: Place) -> None:
    assert not [value for value in place.found().values() if "s3cret" in value]
