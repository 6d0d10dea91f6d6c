"""The embedded Spark stays ready for the next command, if nothing is different for it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.functional.processes.test_processes import BIN
from tests.functional.project import Project

pytestmark = pytest.mark.needs(session="starts the embedded Spark")

# a statement that takes far longer than a test, and writes files all the time
ENDLESS = """
    select /*+ repartition(64) */ id, sha2(cast(id as string), 512) as name from range(200000000)
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    created = Project(tmp_path / "shop")
    created.target["spark_idle_timeout"] = "5m"
    created.write_project()
    rows(created, 3)
    yield created
    stop(created.path / ".spark")


def rows(project: Project, number: int) -> None:
    project.model(f"select id, 'x' as name from range({number})", unique_key="id")


def python_model(project: Project, code: str) -> None:
    (project.path / "models" / "orders.sql").unlink()
    project.write("models/orders.py", code)


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


def started(project: Project) -> subprocess.Popen[str]:
    """A run that has just begun."""
    return subprocess.Popen(
        [BIN / "dbt", "run"],
        cwd=project.path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def jvms(spark: Path) -> list[int]:
    """Return the processes of Java, or of Python workers, whose files are in a folder."""
    found = subprocess.run(
        ["pgrep", "-f", f"java.*{spark}/"], stdout=subprocess.PIPE, text=True, check=False
    )
    return [int(process) for process in found.stdout.split()]


def jvm(project: Project) -> int:
    [found] = jvms(project.path / ".spark")
    return found


def has_ended(spark: Path, process: int) -> bool:
    return process not in jvms(spark)


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
    rows(project, 4)
    assert "stays ready" not in dbt(project, "run")
    project.assert_mirrored()

    assert jvm(project) == first
    ready = r"Embedded Spark was ready since [\d:]+ \(process \d+, \d+ MB\)"
    assert re.search(ready, dbt(project, "debug"))

    assert "The embedded Spark was ended" in dbt(project, "run-operation", "mirror_stop_spark")
    until(lambda: not jvms(project.path / ".spark"), 10)
    assert "No embedded Spark is ready" in dbt(project, "run-operation", "mirror_stop_spark")

    project.target["spark_idle_timeout"] = 0
    project.write_project()
    dbt(project, "run")
    until(lambda: not jvms(project.path / ".spark"), 20)


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


def test_a_command_that_is_killed_takes_spark_with_it_and_the_next_run_is_right(
    project: Project,
) -> None:
    """While Spark builds, and while a Python model computes."""
    spark = project.path / ".spark"
    dbt(project, "run")
    for number in (4, 5):
        if number == 4:
            project.model(ENDLESS, unique_key="id")
        else:
            python_model(project, PYTHON_WORKERS)
        command = building(project)

        command.kill()
        command.communicate()

        until(lambda: not jvms(spark), 10)
        until(lambda: not workers(project), 10)
        (project.path / "models" / "orders.py").unlink(missing_ok=True)
        rows(project, number)
        assert "+1 ~0 -0" in dbt(project, "run")
        project.assert_mirrored()


def building(project: Project) -> subprocess.Popen[str]:
    """A run that uses the Spark of the last command, and has begun to build a node."""
    ready = jvm(project)
    shutil.rmtree(project.path / "logs")
    command = started(project)
    until(lambda: is_building(project, ready), 120)
    return command


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
    dbt(project, "debug")
    first = jvm(project)
    # what changes with each terminal and task
    task = {"TERM": "xterm", "SHLVL": "7", "AIRFLOW_CTX_TRY_NUMBER": "2", "GITHUB_ENV": "/x"}
    dbt(project, "debug", **task)
    assert jvm(project) == first

    project.target["server_side_parameters"] = {"spark.sql.shuffle.partitions": "3"}
    project.write_project()
    (tmp_path / "conf").mkdir()
    told = dbt(project, "debug", HADOOP_CONF_DIR=str(tmp_path / "conf"))

    for name in ("variable HADOOP_CONF_DIR", "setting spark.sql.shuffle.partitions"):
        assert re.search(f"differed in: .*{name}", told.replace("\n", " "))
    assert jvm(project) != first


# 150,000,000 references of four bytes, of which Java's root logger does not let go
FILLS_MEMORY = """
def model(dbt, session):
    dbt.config(unique_key="id")
    logging = session._jvm.java.util.logging
    console = logging.ConsoleHandler()
    handler = logging.MemoryHandler(console, 150_000_000, logging.Level.OFF)
    logging.Logger.getLogger("").addHandler(handler)
    return session.range(3)
"""


def test_a_spark_with_less_than_half_of_its_memory_is_ended_by_the_next_command(
    project: Project,
) -> None:
    project.target["server_side_parameters"] = {"spark.driver.memory": "1g"}
    project.write_project()
    python_model(project, FILLS_MEMORY)
    dbt(project, "run")
    first = jvm(project)

    told = dbt(project, "debug")

    assert re.search("differed in: memory", told.replace("\n", " "))
    assert jvm(project) != first


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
    return session.createDataFrame([(1, " ".join(seen))], "id int, name string")
"""


def test_a_command_sees_its_own_variables_and_modules_and_nothing_that_the_last_one_has_left(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "left.txt").write_text("left")
    python_model(project, LEFT.replace("{file}", str(tmp_path / "left.txt")))
    project.write("models/workers.py", SEEN_BY_WORKERS)
    module = tmp_path / "modules" / "shop_module.py"
    module.parent.mkdir()
    in_java, by_workers, used = [], [], set()
    for run in ("1", "2"):
        module.write_text(f"VALUE = 'module {run}'\n")
        env = {"AIRFLOW_CTX_DAG_RUN_ID": f"run {run}", "PYTHONPATH": str(module.parent)}
        # one after the other, since both use the same JVM
        dbt(project, "run", "--threads", "1", **env)
        used.add(jvm(project))
        in_java.append(dict(next(iter(project.mirror())))["name"])
        by_workers.append({dict(row)["name"] for row in project.mirror("workers")})
        for name in ("orders", "workers"):
            project.assert_mirrored(name)

    assert len(used) == 1
    assert by_workers == [{f"str run {run} module {run} Spark None"} for run in ("1", "2")]
    assert in_java[0] == in_java[1]
    assert in_java[0].startswith("str None None ")
    assert "Tokyo" not in in_java[0]


def test_a_spark_that_is_killed_while_it_builds_is_told_and_replaced(project: Project) -> None:
    """By its own end, or by that of its keeper."""
    spark = project.path / ".spark"
    dbt(project, "run")
    for number, victim in ((4, "keeper"), (5, "Spark")):
        first = jvm(project)
        parent = int(Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[1])
        project.model(ENDLESS, unique_key="id")
        command = building(project)

        os.kill(parent if victim == "keeper" else first, signal.SIGKILL)

        told, _ = command.communicate(timeout=120)
        assert command.returncode == 1
        assert "Spark has ended" in told, told
        assert "spark.log" in told
        assert "Traceback" not in told
        until(partial(has_ended, spark, first), 10)
        rows(project, number)
        assert "+1 ~0 -0" in dbt(project, "run")
        project.assert_mirrored()


def test_two_commands_at_once_use_one_spark_after_the_other_whatever_collector_it_has(
    project: Project,
) -> None:
    options = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:MinHeapFreeRatio=40"}
    project.target["server_side_parameters"] = options
    project.write_project()
    commands = [started(project), started(project)]
    outputs = [command.communicate(timeout=300)[0] for command in commands]

    assert [command.returncode for command in commands] == [0, 0], outputs
    assert sorted("unchanged" in output for output in outputs) == [False, True]
    assert jvm(project)
    project.assert_mirrored()


def without_java(folder: Path) -> dict[str, str]:
    """The environment of a machine that has only a Java that is too old."""
    told = f'openjdk version "11.0.2"\n    java.home = {folder}'
    for name, content in (
        ("bin/java", f"#!/bin/sh\ncat >&2 <<END\n{told}\nEND\n"),
        ("release", 'JAVA_VERSION="11.0.2"\n'),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
    return {"JAVA_HOME": "", "PATH": f"{folder}/bin:{os.environ['PATH']}"}


def test_without_java_the_one_from_pypi_is_used_whose_archive_of_classes_may_be_damaged(
    project: Project, tmp_path: Path
) -> None:
    env = without_java(tmp_path / "old") | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    told = dbt(project, "run-operation", "mirror_prepare", **env)
    assert "The embedded Spark has started and ended with the Java in" in told
    assert (project.path / ".spark" / "java" / "bin" / "java").exists()
    assert not project.landing_zone.exists()
    [archive] = (tmp_path / "cache").glob("*/java/*")
    content = archive.read_bytes()
    half = len(content) // 2
    archive.write_bytes(content[:half] + bytes(4_000_000) + content[half + 4_000_000 :])

    assert "initial +3" in dbt(project, "run", **env)

    project.assert_mirrored()


def java_class(name: str, text: str) -> bytes:
    """A class of Java whose method `now` returns a text (JVM specification, chapter 4)."""

    def utf8(content: str) -> bytes:
        return b"\1" + struct.pack(">H", len(content)) + content.encode()

    constants = [
        *(utf8(name), struct.pack(">BH", 7, 1)),
        *(utf8("java/lang/Object"), struct.pack(">BH", 7, 3)),
        *(utf8("now"), utf8("()Ljava/lang/String;"), utf8("Code")),
        *(utf8(text), struct.pack(">BH", 8, 8)),
    ]
    code = struct.pack(">HHI", 1, 0, 3) + b"\x12\x09\xb0" + struct.pack(">HH", 0, 0)
    method = struct.pack(">HHHHHI", 9, 5, 6, 1, 7, len(code)) + code
    begin = struct.pack(">IHHH", 0xCAFEBABE, 0, 52, len(constants) + 1) + b"".join(constants)
    return begin + struct.pack(">HHHHHH", 0x21, 2, 4, 0, 0, 1) + method + struct.pack(">H", 0)


def build(project: Project, text: str) -> None:
    """Build Java code that returns a text: a jar of Spark's, one of a hook, and a folder."""
    for name in ("Rate", "Added"):
        with zipfile.ZipFile(project.path / "jars" / f"{name}.jar", "w") as jar:
            jar.writestr(f"{name}.class", java_class(name, text))
    (project.path / "jars" / "classes" / "Folder.class").write_bytes(java_class("Folder", text))


def test_a_spark_that_has_inherited_an_older_build_of_java_code_is_ended(project: Project) -> None:
    (project.path / "jars" / "classes").mkdir(parents=True)
    settings = {"spark.jars": "jars/Rate.jar", "spark.driver.extraClassPath": "jars/classes"}
    project.target["server_side_parameters"] = settings
    project.write_project()
    names = ", ".join(f"java_method('{name}', 'now')" for name in ("Rate", "Added", "Folder"))
    project.model(
        f"select 1 as id, concat_ws(' ', {names}) as name",
        unique_key="id",
        pre_hook="add jar jars/Added.jar",
    )
    for text in ("old", "new"):
        build(project, text)
        dbt(project, "run")
        [row] = project.mirror()
        assert dict(row)["name"] == f"str {text} {text} {text}"
    first = jvm(project)

    dbt(project, "debug")

    assert jvm(project) == first, "the same build is not another one"
