"""The embedded Spark stays ready for the next command, if nothing is different for it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.functional.project import Project
from tests.functional.test_processes import BIN

pytestmark = [pytest.mark.slow, pytest.mark.session("starts the embedded Spark")]

# a statement that takes far longer than a test, and writes files all the time
ENDLESS = """
    select /*+ repartition(64) */ id, sha2(cast(id as string), 512) as name from range(200000000)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    created = Project(tmp_path / "shop")
    created.target["spark_idle_timeout"] = "5m"
    created.write_project()
    rows(created, 3)
    yield created
    for each in tmp_path.glob("*/.spark"):
        stop(each)


def rows(project: Project, number: int) -> None:
    project.model(f"select id, 'x' as name from range({number})", unique_key="id")


def dbt(project: Project, *command: str, **env: str) -> str:
    """Run a command of dbt in a process of its own, and return what it prints."""
    done = subprocess.run(
        [BIN / "dbt", *command],
        cwd=project.path,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def jvms(spark: Path) -> list[int]:
    """Return the processes of Java, or of Python workers, whose files are in a folder."""
    found = subprocess.run(
        ["pgrep", "-f", f"java.*{spark}/"], stdout=subprocess.PIPE, text=True, check=False
    )
    return [int(process) for process in found.stdout.split()]


def jvm(project: Project) -> int:
    [found] = jvms(project.path / ".spark")
    return found


def stop(spark: Path) -> None:
    for process in jvms(spark):
        os.kill(process, signal.SIGKILL)


def until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_next_command_uses_the_spark_of_the_one_before_which_tells_once(
    project: Project,
) -> None:
    told = dbt(project, "run")
    assert "Spark stays ready for 5 minutes" in told
    assert "`spark_idle_timeout: 0`" in told
    first = jvm(project)
    for number in (4, 3):
        rows(project, number)
        assert "stays ready" not in dbt(project, "run")
        project.assert_mirrored()

    assert jvm(project) == first
    assert re.search(
        r"Embedded Spark was ready since [\d:]+ \(process \d+, \d+ MB\)", debug(project)
    )

    assert "The embedded Spark was ended" in dbt(project, "run-operation", "mirror_stop_spark")
    until(lambda: not jvms(project.path / ".spark"), 10)
    assert "No embedded Spark is ready" in dbt(project, "run-operation", "mirror_stop_spark")


def debug(project: Project, **env: str) -> str:
    return dbt(project, "debug", **env)


@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.exhaustive), 1, 2])
def test_a_command_that_is_killed_takes_spark_with_it_and_the_next_run_is_right(
    project: Project, number: int
) -> None:
    """While it builds, while it publishes, or while a Python model computes."""
    dbt(project, "run")
    spark = project.path / ".spark"
    first = jvm(project)
    if number == 2:
        project.write("models/orders.py", PYTHON_WORKERS)
        (project.path / "models" / "orders.sql").unlink()
    else:
        project.model(ENDLESS, unique_key="id")
    shutil.rmtree(project.path / "logs")
    started = subprocess.Popen(
        [BIN / "dbt", "run"], cwd=project.path, stdout=subprocess.DEVNULL, start_new_session=True
    )
    until(lambda: is_building(project, first), 120)
    time.sleep(number)

    started.kill()
    started.wait()

    until(lambda: not jvms(spark), 10)
    until(lambda: not workers(project), 10)
    (project.path / "models" / "orders.py").unlink(missing_ok=True)
    rows(project, 4)
    assert "+1 ~0 -0 · #2" in dbt(project, "run")
    project.assert_mirrored()


PYTHON_WORKERS = """
import time
def model(dbt, session):
    dbt.config(unique_key="id")
    def slow(rows):
        for row in rows:
            time.sleep(600)
            yield row
    return session.range(3).mapInPandas(slow, "id long")
"""


def workers(project: Project) -> list[int]:
    """Return the workers in Python of a project's Spark, which have its working directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_worker = b"pyspark.daemon" in (process / "cmdline").read_bytes()
            if is_worker and (process / "cwd").readlink() == project.path:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def is_building(project: Project, process: int) -> bool:
    """Whether a node has started, and Spark has used half a core for a moment."""
    log = project.path / "logs" / "dbt.log"
    if not log.exists() or " START " not in log.read_text():
        return False
    before = cpu(process)
    time.sleep(1)
    return cpu(process) - before > 50


def cpu(process: int) -> int:
    """In hundredths of a second."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_spark_with_another_inheritance_is_ended_and_debug_tells_what_differed(
    project: Project, tmp_path: Path
) -> None:
    debug(project)
    first = jvm(project)
    # what changes with each terminal and task
    task = {"TERM": "xterm", "SHLVL": "7", "AIRFLOW_CTX_TRY_NUMBER": "2", "GITHUB_ENV": "/x"}
    debug(project, **task)
    assert jvm(project) == first

    (tmp_path / "conf").mkdir()
    told = debug(project, HADOOP_CONF_DIR=str(tmp_path / "conf"))
    assert "differed in: variable HADOOP_CONF_DIR" in told
    (tmp_path / "conf" / "core-site.xml").write_text("<configuration/>")
    told = debug(project, HADOOP_CONF_DIR=str(tmp_path / "conf"))
    assert "differed in: files of settings" in told

    project.target["server_side_parameters"] = {"spark.sql.shuffle.partitions": "3"}
    project.write_project()
    told = debug(project, HADOOP_CONF_DIR=str(tmp_path / "conf"))
    assert "differed in: setting spark.sql.shuffle.partitions" in told

    second = jvm(project)
    done = subprocess.run(
        [BIN / "dbt", "debug", "--project-dir", project.path, "--profiles-dir", project.path],
        cwd=tmp_path,
        env={**os.environ, "HADOOP_CONF_DIR": str(tmp_path / "conf")},
        capture_output=True,
        text=True,
    )
    assert "differed in: working directory" in done.stdout
    assert jvm(project) != second


def test_functions_in_python_see_the_variables_of_their_command_and_modules_anew(
    project: Project, tmp_path: Path
) -> None:
    module = tmp_path / "modules" / "shop_module.py"
    module.parent.mkdir()
    project.write("models/orders.py", SEEN_BY_WORKERS)
    (project.path / "models" / "orders.sql").unlink()
    found, used = [], set()
    for run in ("1", "2"):
        module.write_text(f"VALUE = 'module {run}'\n")
        env = {"AIRFLOW_CTX_DAG_RUN_ID": f"run {run}", "PYTHONPATH": str(module.parent)}
        dbt(project, "run", **env)
        used.add(jvm(project))
        found.append({dict(row)["name"] for row in project.mirror()})
        project.assert_mirrored()

    assert found == [{f"str run {run} module {run} Spark None"} for run in ("1", "2")]
    assert len(used) == 1


SEEN_BY_WORKERS = """
def model(dbt, session):
    dbt.config(unique_key="id")
    in_java = str(session._jvm.java.lang.System.getenv("AIRFLOW_CTX_DAG_RUN_ID"))
    def seen(frames):
        import os, shop_module
        for frame in frames:
            name = f"{os.environ['AIRFLOW_CTX_DAG_RUN_ID']} {shop_module.VALUE} Spark {in_java}"
            yield frame.assign(name=name)
    return session.range(1).mapInPandas(seen, "id long, name string")
"""

# what a Python model can leave in a JVM, and how the next command would see it
LEFT = """
def model(dbt, session):
    dbt.config(unique_key="id")
    context, jvm = session.sparkContext, session._jvm
    hadoop, system = context._jsc.hadoopConfiguration(), jvm.java.lang.System
    zone = jvm.java.util.TimeZone
    storage = context._jsc.sc().getPersistentRDDs()
    seen = [
        str(hadoop.get("shop.key")),
        str(system.getProperty("shop.key")),
        zone.getDefault().getID(),
        str(jvm.java.util.Locale.getDefault()),
        str(storage.size()),
        str(session.sql("show views in global_temp").count()),
        str(session.sql("list files").count()),
        str(session.conf.get("shop.key", "None")),
        str(session.table("seen").count()) if session.catalog.tableExists("seen") else "None",
    ]
    hadoop.set("shop.key", "left")
    system.setProperty("shop.key", "left")
    zone.setDefault(zone.getTimeZone("Asia/Tokyo"))
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale.forLanguageTag("tr-TR"))
    session.range(5).cache().count()
    session.range(5).createOrReplaceGlobalTempView("left_view")
    session.range(5).createOrReplaceTempView("seen")
    context.addFile("{file}")
    session.conf.set("shop.key", "left")
    frame = session.createDataFrame([(1, " ".join(seen))], "id int, name string")
    {stop}
    return frame
"""


def test_a_command_sees_nothing_of_what_the_one_before_has_left_in_spark(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "left.txt").write_text("left")
    (project.path / "models" / "orders.sql").unlink()
    code = LEFT.replace("{file}", str(tmp_path / "left.txt")).replace("{stop}", "")
    project.write("models/orders.py", code)
    dbt(project, "run")
    first, seen = jvm(project), project.mirror()

    for _ in range(2):
        assert "unchanged" in dbt(project, "run", "--full-refresh") or project.mirror() == seen

    assert jvm(project) == first
    [row] = project.mirror()
    assert dict(row)["name"].startswith("str None None ")
    assert "left" not in dict(row)["name"]
    assert "Tokyo" not in dict(row)["name"]


@pytest.mark.exhaustive
def test_a_command_that_has_stopped_spark_leaves_a_spark_that_works(project: Project) -> None:
    dbt(project, "run")
    (project.path / "models" / "orders.sql").unlink()
    project.write(
        "models/orders.py",
        "def model(dbt, session):\n    session.sparkContext.stop()\n    return session.range(3)\n",
    )
    done = subprocess.run([BIN / "dbt", "run"], cwd=project.path, capture_output=True, text=True)
    assert done.returncode == 1

    (project.path / "models" / "orders.py").unlink()
    rows(project, 4)
    assert "+1 ~0 -0" in dbt(project, "run")
    project.assert_mirrored()


@pytest.mark.parametrize("when", [pytest.param("idle", marks=pytest.mark.exhaustive), "in use"])
@pytest.mark.parametrize("victim", ["keeper", "Spark"])
def test_a_spark_that_is_killed_is_told_and_replaced(
    project: Project, victim: str, when: str
) -> None:
    dbt(project, "run")
    first = jvm(project)
    parent = int(Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[1])
    told = ""
    if when == "in use":
        project.model(ENDLESS, unique_key="id")
        shutil.rmtree(project.path / "logs")
        started = subprocess.Popen(
            [BIN / "dbt", "run"], cwd=project.path, stdout=subprocess.PIPE, text=True
        )
        until(lambda: is_building(project, first), 120)

    os.kill(parent if victim == "keeper" else first, signal.SIGKILL)

    if when == "in use":
        told, _ = started.communicate(timeout=120)
        assert started.returncode == 1
        assert "Spark has ended" in told, told
        assert "spark.log" in told
        assert "Traceback" not in told
    until(lambda: first not in jvms(project.path / ".spark"), 10)
    rows(project, 4)
    assert "+1 ~0 -0" in dbt(project, "run")
    project.assert_mirrored()


@pytest.mark.exhaustive
def test_copied_moved_and_restored_folders_of_spark_are_what_they_are(
    project: Project, tmp_path: Path
) -> None:
    dbt(project, "run")
    backup = tmp_path / "backup"
    shutil.copytree(project.path / ".spark", backup)
    before = project.state()[0]
    copy = Project(tmp_path / "copy")
    shutil.rmtree(copy.path)
    shutil.copytree(project.path, copy.path)
    copy.landing_zone = copy.path / "mirror.MirroredDatabase" / "Files" / "LandingZone"
    copy.schema, copy.target = project.schema, project.target

    rows(copy, 5)
    assert "+2 ~0 -0" in dbt(copy, "run")
    copy.assert_mirrored()
    assert project.state()[0] == before

    rows(project, 4)
    dbt(project, "run")
    # the relation is behind its mirrored table
    for path in backup.iterdir():
        if path.name in ("metastore_db", "warehouse"):
            shutil.rmtree(project.path / ".spark" / path.name)
            shutil.copytree(path, project.path / ".spark" / path.name)
    done = subprocess.run([BIN / "dbt", "run"], cwd=project.path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "--full-refresh" in done.stdout

    shutil.rmtree(project.path / ".spark")
    until(lambda: not jvms(project.path / ".spark"), 5)
    dbt(project, "run", "--full-refresh")
    project.assert_mirrored()


@pytest.mark.exhaustive
def test_the_spark_of_another_project_of_the_user_ends_an_idle_one(
    project: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path / "other")
    other.target["spark_idle_timeout"] = "5m"
    other.write_project()
    dbt(project, "debug")
    dbt(other, "debug")

    until(lambda: not jvms(project.path / ".spark"), 5)
    assert jvms(other.path / ".spark")


def test_two_commands_at_once_use_one_spark_after_the_other(project: Project) -> None:
    dbt(project, "run")
    first = jvm(project)
    rows(project, 4)
    started = [
        subprocess.Popen([BIN / "dbt", "run"], cwd=project.path, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=300)[0] for process in started]

    assert [process.returncode for process in started] == [0, 0], outputs
    assert sorted("unchanged" in output for output in outputs) == [False, True]
    assert jvm(project) == first
    project.assert_mirrored()


@pytest.mark.exhaustive
def test_a_long_process_keeps_no_other_one_from_spark_between_its_commands(
    project: Project,
) -> None:
    program = """
        import sys
        from dbt.cli.main import dbtRunner
        assert dbtRunner().invoke(["run", "--quiet"]).success
        print("ended", flush=True)
        sys.stdin.readline()
        assert dbtRunner().invoke(["run", "--quiet"]).success
        """
    started = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=project.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout
    while "ended" not in started.stdout.readline():
        assert started.poll() is None
    first = jvm(project)
    rows(project, 4)

    assert "+1 ~0 -0" in dbt(project, "run")

    rows(project, 5)
    started.communicate("\n", timeout=120)
    assert started.returncode == 0
    assert jvm(project) == first
    project.assert_mirrored()


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


@pytest.mark.exhaustive
def test_java_that_can_makes_an_archive_of_classes_on_request_and_starts_from_it(
    project: Project, tmp_path: Path
) -> None:
    project.target["server_side_parameters"] = {
        "spark.driver.extraJavaOptions": "-Xlog:class+load:file=classes.log"
    }
    project.write_project()
    env = without_java(tmp_path / "old")  # so it is the one from PyPI

    told = dbt(project, "run-operation", "mirror_prepare", **env)

    assert "The embedded Spark has started and ended with the Java in" in told
    assert not project.landing_zone.exists()
    [archive] = (tmp_path / "cache").glob("*/java/*")
    content = archive.read_bytes()
    dbt(project, "run", **env)
    loaded = (project.path / "classes.log").read_text().splitlines()
    assert sum("org.apache.spark" in x and "shared objects file" in x for x in loaded) > 1000
    project.assert_mirrored()

    stop(project.path / ".spark")
    half = len(content) // 2
    archive.write_bytes(content[:half] + bytes(4_000_000) + content[half + 4_000_000 :])
    rows(project, 4)
    assert "+1 ~0 -0" in dbt(project, "run", **env)
    project.assert_mirrored()


@pytest.mark.exhaustive
def test_a_spark_without_an_idle_time_ends_with_its_command(project: Project) -> None:
    project.target["spark_idle_timeout"] = 0
    project.write_project()

    told = dbt(project, "run")

    assert "stays ready for 5 minutes" not in told
    until(lambda: not jvms(project.path / ".spark"), 20)


@pytest.mark.exhaustive
def test_fifty_commands_need_no_more_memory_and_files_than_ten(project: Project) -> None:
    seen = []
    for _ in range(int(os.environ.get("COMMANDS", "12"))):
        dbt(project, "debug")
        process = Path(f"/proc/{jvm(project)}")
        files, threads = (len(list((process / name).iterdir())) for name in ("fd", "task"))
        seen.append((files, threads))
    for kind in (0, 1):
        first, last = ([each[kind] for each in part] for part in (seen[3:6], seen[-3:]))
        assert min(last) <= max(first) * 1.1, seen
