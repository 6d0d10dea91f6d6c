"""Which image of its classes the embedded Spark starts from."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark import java_image
from dbt.adapters.openmirroring.spark.java_image import JavaImage


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


def test_what_could_not_be_made_is_not_tried_again(tmp_path: Path, cache: Path) -> None:
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
    assert JavaImage(home, cache).description == f"will be prepared after a run, in {cache}"

    made = image(home, cache, b"c" * (3 << 20))

    assert made.description == f"starts from {made.path} (3 MB)"


def test_a_part_of_an_image_is_none(tmp_path: Path, cache: Path) -> None:
    found = image(java(tmp_path, "17.0.15"), cache, b"classes")
    found.path.write_bytes(b"class")

    assert found.options() == []
    assert found.is_wanted


def test_a_damaged_image_is_none(tmp_path: Path, cache: Path) -> None:
    found = image(java(tmp_path, "17.0.15"), cache, b"classes")
    found.path.write_bytes(b"cl\0\0ses")

    assert found.options() == []
    assert found.is_wanted


@pytest.mark.parametrize("record", [b"", b"7", b"7 00000000", b"\xff"])
def test_an_image_without_its_checksum_is_none(tmp_path: Path, cache: Path, record: bytes) -> None:
    found = image(java(tmp_path, "17.0.15"), cache, b"classes")
    found.path.with_suffix(".sum").write_bytes(record)

    assert found.options() == []
    assert found.is_wanted


def test_another_java_has_another_image(tmp_path: Path, cache: Path) -> None:
    before = JavaImage(java(tmp_path, "17.0.15"), cache)
    after = JavaImage(java(tmp_path, "17.0.16"), cache)

    assert before.path != after.path


def test_a_java_that_does_not_say_which_it_is_gets_none(tmp_path: Path, cache: Path) -> None:
    assert not JavaImage(tmp_path, cache).is_wanted


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_none_is_wanted_where_none_can_be_written(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o500)

    assert not JavaImage(java(tmp_path, "17.0.15"), cache).is_wanted


def test_none_is_wanted_where_there_is_no_room(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_image, "_ROOM", sys.maxsize)

    found = JavaImage(java(tmp_path, "17.0.15"), cache)

    assert not found.is_wanted
    assert found.description == f"is not prepared: {cache} cannot be written, or lacks room"


def test_none_is_wanted_where_a_file_is_in_the_way(tmp_path: Path, cache: Path) -> None:
    cache.parent.touch()

    assert not JavaImage(java(tmp_path, "17.0.15"), cache).is_wanted


def test_two_processes_at_once_make_one(tmp_path: Path, cache: Path) -> None:
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
    # what a killed process leaves
    (cache / "making-x" / "models").mkdir(parents=True)
    JavaImage(home, cache).path.with_suffix(".lock").touch()

    JavaImage(home, cache).make(lambda _, options: write_image(options))

    assert JavaImage(home, cache).is_there


def test_an_image_in_use_is_kept_and_others_go_after_a_month(tmp_path: Path, cache: Path) -> None:
    used, unused = (image(java(tmp_path, version), cache, b"x") for version in ("17", "21"))
    month = time.time() - 31 * 24 * 3600
    for each in (used, unused):
        for path in cache.glob(f"{each.path.stem}.*"):
            os.utime(path, (month, month))
    used.options()

    used.remove_unused()

    assert {path.stem for path in cache.iterdir()} == {used.path.stem}
