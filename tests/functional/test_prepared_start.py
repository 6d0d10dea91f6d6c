"""The embedded Spark starts from an image of its classes, made after the second command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.functional.project import Project
from tests.functional.test_processes import BIN

pytestmark = [pytest.mark.slow, pytest.mark.session("starts the embedded Spark")]

# seconds that it may take to make an image, on a machine that does much else
PATIENCE = 900

# bytes that a disk has lost of a damaged image
LOST = 4_000_000


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return new_project(tmp_path / "shop")


def new_project(folder: Path) -> Project:
    created = Project(folder)
    del created.target["prepared_start"]
    # the archive of classes and the options that Java has are told in logs
    created.target["server_side_parameters"] = {
        "spark.driver.extraJavaOptions": "-Xlog:class+load:file=classes.log "
        "-XX:+PrintCommandLineFlags"
    }
    created.write_project()
    return created


def run(project: Project, rows: int, cache: Path) -> None:
    project.model(f"select id from range({rows})", unique_key="id")
    dbt(project, "run", cache)
    project.assert_mirrored()


def dbt(project: Project, command: str, cache: Path, **env: str) -> str:
    """Run a command of dbt in a process of its own, and return what it prints."""
    done = subprocess.run(
        [BIN / "dbt", *command.split()],
        cwd=project.path,
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def starts_from_an_image(project: Project) -> bool:
    """Spark's own classes come from it; Java's are in an archive anyway."""
    loaded = (project.path / "classes.log").read_text().splitlines()
    from_image = [x for x in loaded if "org.apache.spark" in x and "shared objects file" in x]
    return len(from_image) > 1000


def has_only_c1(project: Project) -> bool:
    return "-XX:TieredStopAtLevel=1 " in (project.path / ".spark" / "spark.log").read_text()


def is_recorded_as_short(project: Project) -> bool:
    """On a machine that does much else, the last command may have been long."""
    return any((project.path / ".spark").glob("short/*"))


def images(cache: Path) -> list[Path]:
    """Return the images that are complete."""
    found = [path for suffix in ("jsa", "aot") for path in cache.glob(f"*/java/*.{suffix}")]
    return [path for path in found if path.stat().st_size]


def wait_for_the_image(cache: Path) -> Path:
    deadline = time.monotonic() + PATIENCE
    while not images(cache) and time.monotonic() < deadline:
        time.sleep(1)
    [image] = images(cache)
    return image


def damage(image: Path) -> None:
    """Another file in its place: the JVM of the last run may still have the one before."""
    content = image.read_bytes()
    half = len(content) // 2
    image.unlink()
    image.write_bytes(content[:half] + bytes(LOST) + content[half + LOST :])


def refuse_settings(project: Project, cache: Path) -> None:
    """A setting that Spark refuses once its JVM runs is told: no JVM is left with the lock."""
    given = project.target["server_side_parameters"]
    project.target["server_side_parameters"] = {**given, "spark.task.cpus": "none"}
    project.write_project()
    with pytest.raises(AssertionError, match="Spark did not start"):
        dbt(project, "run", cache)
    project.target["server_side_parameters"] = given
    project.write_project()


def test_a_run_is_prepared_by_the_one_before_and_a_damaged_image_is_replaced(
    project: Project, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    run(project, 3, cache)
    assert not has_only_c1(project)
    assert not training(cache)
    assert "will be prepared after the second command" in dbt(project, "debug", cache)
    image = wait_for_the_image(cache)
    assert f"starts from {image}" in dbt(project, "debug", cache)

    was_short = is_recorded_as_short(project)
    run(project, 4, cache)

    assert starts_from_an_image(project)
    assert has_only_c1(project) == was_short
    refuse_settings(project, cache)
    damage(image)

    run(project, 5, cache)

    assert not starts_from_an_image(project)
    wait_for_the_image(cache)


def test_a_python_model_that_computes_for_long_is_no_short_command(
    project: Project, tmp_path: Path
) -> None:
    project.write(
        "models/orders.py",
        "import time\ndef model(dbt, session):\n    time.sleep(6)\n    return session.range(3)\n",
    )

    dbt(project, "run", tmp_path / "cache")

    project.assert_mirrored()
    assert not is_recorded_as_short(project)


def training(cache: Path) -> list[int]:
    """The processes that make an image in a folder."""
    found = subprocess.run(["pgrep", "-f", f"image_trainer.*{cache}"], stdout=subprocess.PIPE)
    return [int(process) for process in found.stdout.split()]


def wait_for_training(cache: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not any(cache.glob("*/java/making-*/models/*")):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def gives_way(process: int) -> bool:
    """Every other process of the machine goes first, also those of other sessions."""
    session = Path(f"/proc/{process}/autogroup")
    values = [session.read_text().split()[-1]] if session.exists() else []
    return {str(os.getpriority(os.PRIO_PROCESS, process)), *values} == {"19"}


def test_two_runs_at_once_and_a_training_that_is_killed_leave_each_run_as_it_is(
    project: Project, tmp_path: Path
) -> None:
    cache, projects = tmp_path / "cache", [project, new_project(tmp_path / "b")]
    for rows in (3, 4):
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda shop, rows=rows: run(shop, rows, cache), projects))
    wait_for_training(cache)
    for process in training(cache):
        # the one that found the other at work has ended
        with suppress(ProcessLookupError, FileNotFoundError):
            assert gives_way(process)
            os.killpg(process, signal.SIGKILL)
    assert not images(cache)

    run(project, 5, cache)

    assert not starts_from_an_image(project)
    wait_for_the_image(cache)


PREPARE = "run-operation mirror_prepare"


def without_java(folder: Path) -> dict[str, str]:
    """The environment of a machine that has only a Java that is too old."""
    write_java(folder, "11.0.2")
    return {"JAVA_HOME": "", "PATH": f"{folder}/bin:{os.environ['PATH']}"}


def write_java(folder: Path, version: str) -> None:
    """Write a Java that does nothing but tell its version."""
    told = f'openjdk version "{version}"\n    java.home = {folder}'
    for name, content in (
        ("bin/java", f"#!/bin/sh\ncat >&2 <<END\n{told}\nEND\n"),
        ("release", f'JAVA_VERSION="{version}"\n'),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)


@pytest.mark.parametrize("from_pypi", [False, True], ids=["installed Java", "Java from PyPI"])
def test_the_image_is_made_on_request_for_the_first_run(
    project: Project, tmp_path: Path, from_pypi: bool
) -> None:
    cache = tmp_path / "cache"
    env = without_java(tmp_path / "old") if from_pypi else {}
    told = dbt(project, PREPARE, cache, **env)

    [image] = images(cache)
    assert f"Embedded Spark starts from {image}" in told
    assert not project.landing_zone.exists()
    made = image.stat().st_ino
    assert f"Embedded Spark starts from {image}" in dbt(project, PREPARE, cache, **env)
    assert image.stat().st_ino == made

    project.model("select id from range(3)", unique_key="id")
    dbt(project, "run", cache, **env)

    assert starts_from_an_image(project)


def test_a_request_says_why_there_is_no_image_and_another_one_tries_again(
    project: Project, tmp_path: Path
) -> None:
    cache, java = tmp_path / "cache", tmp_path / "java"
    write_java(java, "17.0.1")

    for _ in range(2):
        with pytest.raises(AssertionError, match=r"was not made .* Spark did not start"):
            dbt(project, PREPARE, cache, JAVA_HOME=str(java))


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"prepared_start": False}, "prepared_start: false"),
        ({"server_side_parameters": {"spark.master": "local"}}, "this target uses another one"),
    ],
)
def test_a_target_whose_spark_starts_from_no_image_is_refused(
    project: Project, tmp_path: Path, setting: dict[str, Any], reason: str
) -> None:
    project.target |= setting
    project.write_project()

    with pytest.raises(AssertionError, match=reason):
        dbt(project, PREPARE, tmp_path / "cache")

    assert not (tmp_path / "cache").exists()
