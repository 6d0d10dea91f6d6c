"""The image of its classes that the embedded Spark starts from."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.embedded import java_image
from dbt.adapters.openmirroring.spark.embedded.java import find_java_home
from dbt.adapters.openmirroring.spark.embedded.java_image import JavaImage, images_folder
from dbt.adapters.openmirroring.spark.embedded.running_commands import StillRunningError

DAY = 24 * 3600


def java(folder: Path, version: str) -> Path:
    home = folder / f"java {version}"
    home.mkdir()
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "cache" / "images"


def image(home: Path, cache: Path, content: bytes = b"") -> JavaImage:
    cache.mkdir(parents=True, exist_ok=True)
    found = JavaImage(home, cache)
    found.make(lambda _, options: write_image(options, content))
    return found


def write_image(options: Sequence[str], content: bytes = b"classes") -> None:
    """Write an image to the place that Java is told."""
    [option] = options
    Path(option.partition("=")[2]).write_bytes(content)


def test_without_an_image_java_gets_no_option_and_one_is_wanted(
    tmp_path: Path, cache: Path
) -> None:
    found = JavaImage(java(tmp_path, "17.0.15"), cache)

    assert found.options() == []
    assert found.is_wanted
    assert not cache.exists()


@pytest.mark.parametrize(
    ("version", "option"),
    [("17.0.15", "SharedArchiveFile"), ("24", "SharedArchiveFile"), ("25.0.1", "AOTCache")],
)
def test_each_java_has_the_image_of_its_kind(
    tmp_path: Path, cache: Path, version: str, option: str
) -> None:
    found = image(java(tmp_path, version), cache, b"classes")

    assert found.options() == [f"-XX:{option}={found.path}"]
    assert not found.is_wanted


def test_an_image_that_could_not_be_made_is_not_tried_again(tmp_path: Path, cache: Path) -> None:
    found = image(java(tmp_path, "17.0.15"), cache)

    assert found.options() == []
    assert not found.is_wanted


def test_a_training_that_fails_is_remembered(tmp_path: Path, cache: Path) -> None:
    def fail(folder: Path, options: Sequence[str]) -> None:
        raise OSError("no Spark")

    wanted = JavaImage(java(tmp_path, "17.0.15"), cache)
    wanted.make(fail)

    assert wanted.options() == []
    assert not wanted.is_wanted
    assert "could not be prepared" in wanted.description


def test_an_image_tells_where_it_is_and_how_much_room_it_takes(
    tmp_path: Path, cache: Path
) -> None:
    home = java(tmp_path, "17.0.15")
    assert JavaImage(home, cache).description == (
        f"will be prepared after the second command, in {cache}"
    )

    made = image(home, cache, b"c" * (3 << 20))

    assert made.description == f"starts from {made.path} (3 MB)"


def test_a_partial_image_is_not_used(tmp_path: Path, cache: Path) -> None:
    found = image(java(tmp_path, "17.0.15"), cache, b"classes")
    found.path.write_bytes(b"class")

    assert found.options() == []
    assert found.is_wanted


def test_a_damaged_image_is_not_used(tmp_path: Path, cache: Path) -> None:
    found = image(java(tmp_path, "17.0.15"), cache, b"classes")
    found.path.write_bytes(b"cl\0\0ses")

    assert found.options() == []
    assert found.is_wanted


@pytest.mark.parametrize("record", [b"", b"7", b"7 00000000", b"\xff"])
def test_an_image_without_its_checksum_is_not_used(
    tmp_path: Path, cache: Path, record: bytes
) -> None:
    found = image(java(tmp_path, "17.0.15"), cache, b"classes")
    found.path.with_suffix(".sum").write_bytes(record)

    assert found.options() == []
    assert found.is_wanted


def test_another_java_has_another_image(tmp_path: Path, cache: Path) -> None:
    before = JavaImage(java(tmp_path, "17.0.15"), cache)
    after = JavaImage(java(tmp_path, "17.0.16"), cache)

    assert before.path != after.path


def test_a_java_that_does_not_report_its_version_gets_no_image(
    tmp_path: Path, cache: Path
) -> None:
    found = JavaImage(tmp_path, cache)

    assert not found.is_wanted
    assert "does not say which Java it is" in found.description


def test_projects_share_the_image_of_the_java_from_pypi(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    first, second = (
        JavaImage(find_java_home(tmp_path / shop / ".spark" / "java"), cache) for shop in "ab"
    )

    assert first.is_wanted
    assert first.path == second.path


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_no_image_is_wanted_where_none_can_be_written(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o500)

    assert not JavaImage(java(tmp_path, "17.0.15"), cache).is_wanted


def test_no_image_is_wanted_where_there_is_no_room(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_image, "_ROOM", sys.maxsize)

    found = JavaImage(java(tmp_path, "17.0.15"), cache)

    assert not found.is_wanted
    assert found.description == f"is not prepared: {cache} cannot be written, or lacks room"


def test_no_image_is_wanted_where_a_file_is_in_the_way(tmp_path: Path, cache: Path) -> None:
    cache.parent.touch()

    assert not JavaImage(java(tmp_path, "17.0.15"), cache).is_wanted


def test_two_processes_at_once_make_one_image(tmp_path: Path, cache: Path) -> None:
    home, trained = java(tmp_path, "17.0.15"), []

    def train(folder: Path, options: Sequence[str]) -> None:
        trained.append(folder)
        JavaImage(home, cache).make(train)
        write_image(options)

    JavaImage(home, cache).make(train)

    assert len(trained) == 1
    assert JavaImage(home, cache).is_there


def test_a_training_that_was_killed_is_done_again(tmp_path: Path, cache: Path) -> None:
    home = java(tmp_path, "17.0.15")
    # a killed process leaves these
    (cache / "making-x" / "models").mkdir(parents=True)
    (cache / "making.lock").touch()

    JavaImage(home, cache).make(lambda _, options: write_image(options))

    assert JavaImage(home, cache).is_there
    assert not (cache / "making-x").exists()


def test_a_training_that_finds_no_time_is_done_later(tmp_path: Path, cache: Path) -> None:
    def give_up(folder: Path, options: Sequence[str]) -> None:
        raise StillRunningError

    found = JavaImage(java(tmp_path, "17.0.15"), cache)
    found.make(give_up)

    assert found.is_wanted
    assert [path.name for path in cache.iterdir()] == ["making.lock"]


def test_a_machine_that_lives_for_one_command_makes_no_image(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Sequence[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    home = java(tmp_path, "17.0.15")

    JavaImage(home, cache).prepare()
    assert started == []

    JavaImage(home, cache).prepare()
    assert len(started) == 1


def not_used_for(seconds: float, found: JavaImage, cache: Path) -> None:
    then = time.time() - seconds
    for path in cache.glob(f"{found.path.stem}.*"):
        os.utime(path, (then, then))


def test_only_the_two_images_that_were_used_last_are_kept(tmp_path: Path, cache: Path) -> None:
    first, second = (image(java(tmp_path, version), cache, b"x") for version in ("17", "21"))
    for found in (first, second):
        not_used_for(2 * DAY, found, cache)
    first.options()

    third = image(java(tmp_path, "25"), cache, b"x")

    assert [found.is_there for found in (first, second, third)] == [True, False, True]
    assert not list(cache.glob(f"{second.path.stem}.*"))


def test_environments_that_take_turns_do_not_replace_each_others_images(
    tmp_path: Path, cache: Path
) -> None:
    used = [image(java(tmp_path, version), cache, b"x") for version in ("17", "21")]

    third = image(java(tmp_path, "25"), cache, b"x")

    assert [found.is_there for found in (*used, third)] == [True, True, False]
    assert third.description == f"is not prepared: 2 other environments use {cache} today"


def test_images_that_nobody_has_used_for_a_month_are_removed(tmp_path: Path, cache: Path) -> None:
    used, unused = (image(java(tmp_path, version), cache, b"x") for version in ("17", "21"))
    for found in (used, unused):
        not_used_for(31 * DAY, found, cache)
    used.options()

    image(java(tmp_path, "25"), cache)

    assert used.is_there
    assert not list(cache.glob(f"{unused.path.stem}.*"))


def test_a_user_without_a_home_has_no_folder_for_images(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home(_: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(java_image, "user_cache_path", no_home)
    assert images_folder() is None

    # as older versions of platformdirs answer
    monkeypatch.setattr(java_image, "user_cache_path", lambda _: Path("~/.cache"))
    assert images_folder() is None
