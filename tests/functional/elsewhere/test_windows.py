"""dbt runs with a Python for Windows, under Wine. Spark is its own, or a server on this machine.

`make test-windows` prepares Wine and runs this.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
import trustme
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.fabric_server import HOST as FABRIC_HOST
from tests.fabric_server import Database, FabricServer, answers_of
from tests.functional import onelake as in_onelake
from tests.functional.project import Project, canonical
from tests.onelake_server import ITEM, WORKSPACE, OneLakeServer, listening
from tests.spark_server import SparkServer
from tests.wine import ROOT, Windows, on_drive, prepared

# the rooms that run there
UNIT_TESTS = (
    "landing_zone",
    "service",
    "node",
    "operations",
    "replicator",
    "test_console.py",
    "test_windows.py",
)

DBT = "from dbt.cli.main import cli; cli()"

# what a quickstart in this checkout has left
LEFTOVERS = (".spark", "*.MirroredDatabase", "target", "logs", "data")

KEYED = {"+unique_key": "id"}

SCHEMA = """
models:
  - name: orders
    columns:
      - {name: id, data_tests: [unique, not_null]}
"""

SNAPSHOT = """
snapshots:
  - name: history
    relation: ref('names')
    config: {unique_key: id, strategy: check, check_cols: all}
"""

# the project of README, with a test and a model in Python
PROFILE = """
shop:
  outputs:
    default:
      type: openmirroring
      schema: analytics
      landing_zone: mirror.MirroredDatabase/Files/LandingZone
      replicate: true
"""
ORDERS = """
{{{{ config(materialized='table', unique_key='id') }}}}
select * from values {rows} as t(id, status)
"""
PAID = """
def model(dbt, session):
    dbt.config(materialized="table", unique_key="id")
    return dbt.ref("orders").filter("status = 'paid'")
"""
EQUAL = """
models:
  - name: orders
    data_tests: [mirror_equals_model]
"""

Dbt = Callable[..., str]
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def windows() -> Iterator[Windows]:
    found = prepared()
    yield found
    found.shut_down()


@pytest.fixture(scope="module", params=["livy", "thrift"])
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(method: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    folder = tmp_path_factory.mktemp("server")
    started = SparkServer(folder, {}, with_livy=method == "livy")
    yield started
    started.stop()


@pytest.fixture
def project(server: SparkServer, method: str, tmp_path: Path) -> Iterator[Project]:
    """A seed, a model of it with a test, and a snapshot."""
    spark = SparkSession.builder.remote(server.url).create()
    created = Project(tmp_path, spark)
    created.target |= server.target(method)
    created.write_project(seeds=KEYED)
    created.write("seeds/names.csv", "id,name\n1,Zoë\n2,b\n3,c\n")
    created.model("select id, upper(name) as name from {{ ref('names') }}", unique_key="id")
    created.write("models/schema.yml", SCHEMA)
    created.write("snapshots/history.yml", SNAPSHOT)
    yield created
    created.drop_schemas(created.schema)
    spark.stop()


def test_the_unit_tests_pass(windows: Windows, tmp_path: Path, record_property: Record) -> None:
    arguments = ["-q", "-p", "no:cacheprovider", "--basetemp", on_drive(tmp_path / "windows")]
    arguments += ["-m", "not slow"]
    arguments += [f"tests/unit/{name}" for name in UNIT_TESTS]

    done = windows.call("-m", "pytest", *arguments, cwd=ROOT, seconds=3600)

    assert done.returncode == 0, done.stdout
    record_property("unit tests under Wine", done.stdout.splitlines()[-1])


def test_a_project_publishes_to_a_local_folder(windows: Windows, project: Project) -> None:
    def dbt(*command: str) -> str:
        return run(windows, project, "-c", DBT, *command)

    assert "All checks passed!" in dbt("debug", "--connection")
    assert_publishes(project, dbt)
    assert "orders" in dbt("run-operation", "mirror_status")


def test_a_project_publishes_to_onelake(
    windows: Windows, project: Project, tmp_path: Path
) -> None:
    onelake, fabric = OneLakeServer(), FabricServer(page_size=100)
    fabric.workspace(WORKSPACE, Database(ITEM.partition(".")[0]))
    in_onelake.publish_to_onelake(project, onelake, fabric)
    project.write_project(seeds=KEYED)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    with listening(onelake, authority, {FABRIC_HOST: answers_of(fabric)}) as port:
        program = on_drive(ROOT / "tests" / "windows_dbt.py")
        certificate = on_drive(tmp_path / "ca.pem")

        def dbt(*command: str) -> str:
            return run(windows, project, program, str(port), certificate, *command)

        assert_publishes(project, dbt)

    assert onelake.violations == []


def test_the_quickstart_prints_the_mirrored_tables(
    windows: Windows, tmp_path: Path, record_property: Record
) -> None:
    project = tmp_path / "integration_tests"
    shutil.copytree(ROOT / "integration_tests", project, ignore=shutil.ignore_patterns(*LEFTOVERS))

    done = windows.call("quickstart.py", cwd=project, seconds=1800)

    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("flights.flights ")]
    assert lines[-1].split() == ["flights.flights", "167,124", "17", "3"]
    record_property("quickstart", done.stdout)


def test_the_embedded_spark_publishes_and_replicates(
    windows: Windows, tmp_path: Path, record_property: Record
) -> None:
    """Also in a folder with a blank and an umlaut, after a kill, and for two commands at once."""
    project = tmp_path / "my shöp"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text("{name: shop, profile: shop}")
    (project / "profiles.yml").write_text(PROFILE)
    (project / "models" / "schema.yml").write_text(EQUAL)
    (project / "models" / "paid.py").write_text(PAID)

    def model(*rows: str) -> None:
        (project / "models" / "orders.sql").write_text(ORDERS.format(rows=", ".join(rows)))

    def dbt(*command: str) -> str:
        started = time.monotonic()
        done = windows.call("-c", DBT, *command, cwd=project, seconds=1800)
        assert done.returncode == 0, done.stdout + done.stderr
        record_property(" ".join(command), f"{time.monotonic() - started:.0f} s\n{done.stdout}")
        return done.stdout

    def rows(table: str = "orders") -> list[tuple[int, str]]:
        found = DeltaTable(project / "mirror.MirroredDatabase" / "Tables" / "analytics" / table)
        return sorted((row["id"], row["status"]) for row in pa.table(found.scan()).to_pylist())

    model("(1, 'open')", "(2, 'open')", "(3, 'paid')")
    assert "[initial +3 · #1" in dbt("run")
    assert rows() == [(1, "open"), (2, "open"), (3, "paid")]
    assert rows("paid") == [(3, "paid")]

    model("(1, 'open')", "(2, 'paid')", "(4, 'open')")
    killed = windows.start("-c", DBT, "run", "--log-path", "killed", cwd=project)
    wait_until(lambda: "START sql table model" in text_of(project / "killed" / "dbt.log"))
    killed.kill()
    killed.communicate()
    wait_until(lambda: not processes_of(project))

    with ThreadPoolExecutor() as threads:
        both = [
            threads.submit(dbt, "build"),
            threads.submit(dbt, "run", "--full-refresh", "--target-path", "other"),
        ]
    assert "PASS=3" in both[0].result()
    assert "Completed successfully" in both[1].result()
    assert rows() == [(1, "open"), (2, "paid"), (4, "open")]
    assert rows("paid") == [(2, "paid")]
    assert processes_of(project) == []


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 900
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def text_of(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


def processes_of(project: Path) -> list[int]:
    """Return the JVMs that have the folder of a project in their commands."""
    name = project.parent.name.encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if name in command and b"SparkSubmit" in command:
                found.append(int(process.name))
    return found


def run(windows: Windows, project: Project, *command: str) -> str:
    """Run dbt in a project, and return what it prints."""
    done = windows.call(*command, "--profiles-dir", ".", cwd=project.path)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_publishes(project: Project, dbt: Dbt) -> None:
    """Load a seed, a model and a snapshot, then publish what changes in them."""
    dbt("build")
    for table in ("names", "orders", "history"):
        project.assert_mirrored(table)
        assert project.mirror(table).total() == 3

    project.write("seeds/names.csv", "id,name\n1,Zoë\n3,C!\n4,d\n")
    shown = dbt("build")

    response = project.results()["orders"]["adapter_response"]
    changed = [response[f"rows_{name}"] for name in ("inserted", "updated", "deleted")]
    assert changed == [1, 1, 1]
    assert "+1 ~1 -1 · #2" in shown
    for table in ("names", "orders", "history"):
        project.assert_mirrored(table)
    rows = [{"id": 1, "name": "ZOË"}, {"id": 3, "name": "C!"}, {"id": 4, "name": "D"}]
    assert project.mirror() == Counter(canonical(row.items()) for row in rows)
