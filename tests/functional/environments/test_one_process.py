"""Several dbt commands in one process, as orchestrators and notebooks have them.

Between two of them, no process has Spark. This is the program of that process too; its arguments:
a folder, the name of a scenario.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from tests.functional import onelake
from tests.functional.processes.test_ready_spark import jvms
from tests.functional.project import Project
from tests.onelake_server import OneLakeServer

pytestmark = pytest.mark.needs(session="starts the embedded Spark")

REPOSITORY = Path(__file__).parents[3]


def jvm(project: Project) -> int:
    """The JVM that is ready for the next command."""
    assert SparkContext._active_spark_context is None
    [found] = jvms(project.path / ".spark")
    return found


def shop(folder: Path) -> Project:
    project = Project(folder)
    # these can be given at the start of Spark only
    static = {"spark.driver.memory": "1g", "spark.sql.ui.retainedExecutions": "7"}
    project.target["server_side_parameters"] = static
    project.write_project()
    return project


def publish(project: Project, rows: int) -> None:
    project.model(f"select id, 'x' as name from range({rows})", unique_key="id")
    project.run()
    project.assert_mirrored()


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


def two_projects(folder: Path) -> None:
    """Each has its own warehouse."""
    one, other = shop(folder / "one"), shop(folder / "other")
    for rows in (3, 4):
        publish(one, rows)
        publish(other, rows)
    assert len(list((folder / "one" / ".spark" / "warehouse").glob("*.db"))) == 1


def flat(folder: Path) -> None:
    """All commands use the Spark of the first. Nothing is left open, here and in the JVM."""
    project = shop(folder)
    calls = int(os.environ.get("CALLS", "10"))
    seen, used = [], set()
    for number in range(calls):
        publish(project, 3 + number % 2)
        java = str(jvm(project))
        used.add(java)
        counts = [threading.active_count(), *map(count, ("self/fd", f"{java}/fd", f"{java}/task"))]
        print(number, *counts, f"{memory()} MB", f"{memory(java)} MB", sep="; ", flush=True)
        seen.append(counts)
    assert len(used) == 1, used
    # a connection to the JVM may be closed a moment later
    for kind, tolerance in enumerate((1, 1, 1.1, 1.1)):
        first, last = ([counts[kind] for counts in part] for part in (seen[3:6], seen[-3:]))
        assert min(last) <= max(first) * tolerance, seen


def count(folder: str) -> int:
    return len(list(Path("/proc", folder).iterdir()))


def memory(process: str = "self") -> int:
    """In MB."""
    [line] = [x for x in Path(f"/proc/{process}/status").read_text().split("\n") if "VmRSS" in x]
    return int(line.split()[1]) // 1024


SCENARIOS: dict[str, Callable[[Path], None]] = {
    scenario.__name__: scenario
    for scenario in (
        to_onelake,
        two_projects,
        flat,
    )
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_commands_of_one_process_do_not_get_in_each_others_way(
    tmp_path: Path, scenario: str
) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.functional.environments.test_one_process",
        str(tmp_path),
        scenario,
    ]

    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


if __name__ == "__main__":
    SCENARIOS[sys.argv[2]](Path(sys.argv[1]))
