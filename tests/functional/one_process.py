"""Several dbt commands in one process, as orchestrators and notebooks have them.

Between two of them, no process has Spark.

Arguments: a folder, the name of a scenario.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner
from pyspark import SparkContext

from dbt.adapters.openmirroring.spark.embedded.start import SparkSetup, process_spark
from tests.functional import onelake
from tests.functional.project import Project
from tests.functional.test_ready_spark import jvms
from tests.onelake_server import OneLakeServer

# these can be given at the start of Spark only
STATIC = {"spark.driver.memory": "1g", "spark.sql.ui.retainedExecutions": "7"}


def jvm(project: Project) -> int:
    """The JVM that is ready for the next command."""
    assert SparkContext._active_spark_context is None
    [found] = jvms(project.path / ".spark")
    return found


def shop(folder: Path, **settings: str) -> Project:
    project = Project(folder)
    project.target["server_side_parameters"] = {**STATIC, **settings}
    project.write_project()
    return project


def publish(project: Project, rows: int) -> None:
    project.model(f"select id, 'x' as name from range({rows})", unique_key="id")
    project.run()
    project.assert_mirrored()


def same_project(folder: Path) -> None:
    """All commands use the Spark that the first has started."""
    project = shop(folder)
    used = set()
    for rows in (3, 4, 5):
        publish(project, rows)
        used.add(jvm(project))
    assert len(used) == 1, used


def to_onelake(folder: Path) -> None:
    """Spark writes to a folder of this machine, in every command."""
    with pytest.MonkeyPatch.context() as patched:
        server = OneLakeServer()
        server.connect(patched)
        project = shop(folder)
        onelake.publish_to_onelake(project, server, onelake.fabric(patched))
        del project.target["staging_location"]
        project.write_project()
        for rows in (3, 4, 5):
            publish(project, rows)
        assert not server.violations


def other_settings(folder: Path) -> None:
    """Each command has the settings of its profile."""
    for limit in ("8", "9", "8"):
        project = shop(folder, **{"spark.sql.ui.retainedExecutions": limit})
        project.write("models/orders.py", LIMIT)
        project.run()
        assert [dict(row) for row in project.mirror()] == [{"found": f"str {limit}"}]


LIMIT = """
def model(dbt, session):
    limit = session.conf.get("spark.sql.ui.retainedExecutions")
    return session.createDataFrame([(limit,)], "found string")
"""


def two_projects(folder: Path) -> None:
    """Each has its own warehouse."""
    one, other = shop(folder / "one"), shop(folder / "other")
    for rows in (3, 4):
        publish(one, rows)
        publish(other, rows)
    assert len(list((folder / "one" / ".spark" / "warehouse").glob("*.db"))) == 1


def at_once(folder: Path) -> None:
    """A command of another project is refused while one runs, and not mixed with it."""
    one, other = shop(folder / "one"), shop(folder / "other")
    publish(one, 3)
    command = dbtRunner()  # stands for one that runs
    setup = SparkSetup(one.path, one.target["server_side_parameters"])
    process_spark.session(command, setup)

    assert "a process can have one Spark at a time" in refused(other)

    process_spark.release(command)
    publish(other, 3)


def refused(project: Project) -> str:
    project.model("select 1 as id")
    return str(dbtRunner().invoke(project.arguments("run")).exception)


def flat(folder: Path) -> None:
    """Nothing is left open by a command."""
    project = shop(folder)
    calls = int(os.environ.get("CALLS", "8"))
    seen = []
    for number in range(calls):
        publish(project, 3 + number % 2)
        files = len(list(Path("/proc/self/fd").iterdir()))
        seen.append((files, threading.active_count()))
        told = (f"{files} files, {seen[-1][1]} threads", f"{memory()} MB")
        print(number, *told, f"{memory(jvm(project))} MB", sep="; ", flush=True)
    # a connection to the JVM may be closed a moment later
    for first, last in zip(zip(*seen[:3], strict=True), zip(*seen[-3:], strict=True), strict=True):
        assert min(last) <= max(first), seen


def memory(process: int | str = "self") -> int:
    """In MB."""
    [line] = [x for x in Path(f"/proc/{process}/status").read_text().split("\n") if "VmRSS" in x]
    return int(line.split()[1]) // 1024


SCENARIOS: dict[str, Callable[[Path], None]] = {
    scenario.__name__: scenario
    for scenario in (
        same_project,
        to_onelake,
        other_settings,
        two_projects,
        at_once,
        flat,
    )
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[2]](Path(sys.argv[1]))
