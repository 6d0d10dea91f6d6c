"""Processes that a user starts from a shell: commands, environments, several side by side."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.delta_tables import content
from tests.functional.project import Project, canonical

REPOSITORY = Path(__file__).parents[3]
BIN = Path(sys.executable).parent


def call(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=600
    )


def dbt(cwd: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return call(BIN / "dbt", *command, cwd=cwd, **env)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    created = Project(tmp_path / "shop")
    created.model("select id, 'x' as name from range(3)", unique_key="id")
    yield created
    created.assert_replicated()


def test_debug_says_what_to_do_about_a_spark_that_does_not_start(project: Project) -> None:
    project.target["server_side_parameters"] = {"spark.driver.memory": "1"}
    project.write_project()

    done = dbt(project.path, "debug")

    assert done.returncode == 1
    assert "Spark did not start" in done.stdout
    assert "spark.log" in done.stdout


def test_two_processes_that_publish_the_same_table_do_not_get_in_each_others_way(
    project: Project, tmp_path: Path
) -> None:
    """Each has its own Spark, both have the landing zone: one wins, the other stops."""
    twin = Project(tmp_path / "twin")
    shutil.rmtree(twin.path)
    shutil.copytree(project.path, twin.path)
    twin.schema = twin.target["schema"] = project.schema
    twin.landing_zone = project.landing_zone
    twin.target["landing_zone"] = str(project.landing_zone)
    twin.write_project()
    projects = [project, twin]

    started = [
        subprocess.Popen([BIN / "dbt", "run"], cwd=p.path, stdout=subprocess.PIPE, text=True)
        for p in projects
    ]
    outputs = [process.communicate(timeout=300)[0] for process in started]

    codes = [process.returncode for process in started]
    assert sorted(codes) == [0, 1], outputs
    loser = outputs[codes.index(1)]
    assert "Another run" in loser or "Somebody else has published this table" in loser
    projects[codes.index(0)].assert_mirrored()
    assert len(project.files()) == 1


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    built = call(BIN / "python", "-m", "hatchling", "build", "-d", folder, cwd=REPOSITORY)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def clean_environment(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel, and nothing of this checkout."""
    environment = tmp_path_factory.mktemp("clean") / "venv"
    (wheel,) = packages.glob("*.whl")
    uv = BIN / "uv"
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--no-deps"]
    install += ["--python", environment]
    commands: list[list[str | Path]] = [
        [uv, "venv", "--quiet", "--python", sys.executable, environment],
        [*install, "-r", REPOSITORY / "requirements.lock"],
        [*install, wheel],
    ]
    for command in commands:
        done = call(*command, cwd=packages)
        assert done.returncode == 0, done.stderr
    return environment / "bin"


def test_the_wheel_holds_macros_and_templates_and_nothing_else_than_the_package(
    packages: Path,
) -> None:
    (wheel,) = packages.glob("*.whl")
    macros = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "macros").rglob("*.sql")}
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {f"dbt/include/openmirroring/{macro}" for macro in macros} <= packed
    assert "dbt/adapters/openmirroring/operations/report.html" in packed
    assert not [name for name in packed if not name.startswith(("dbt/", "dbt_openmirroring-"))]


def test_the_wheel_runs_a_project_with_three_lines_of_profile_and_leaves_its_folder_tidy(
    project: Project, clean_environment: Path
) -> None:
    project.target = {key: project.target[key] for key in ("type", "schema", "landing_zone")}
    project.write_project()

    # the catalog in memory of other tests loses partitions of a renamed table
    documentation = [{"name": "id", "description": "Bob's number" + 300 * "!"}]
    model = {"name": "orders", "description": "Bob's orders", "columns": documentation}
    project.write("models/orders.yml", json.dumps({"models": [model]}))
    for rows, published in ((3, "initial +3"), (4, "+1 ~0 -0")):
        project.model(
            f"select id, id % 2 as part, 'it''s' as name from range({rows})",
            unique_key="id",
            partition_by="part",
            persist_docs={"relation": True, "columns": True},
        )

        done = call(clean_environment / "dbt", "run", cwd=project.path)

        assert done.returncode == 0, done.stdout
        assert done.stderr == ""
        assert published in done.stdout
        assert all("WARN=0" in line for line in done.stdout.splitlines() if "WARN" in line)
        project.assert_mirrored()
    assert {path.name for path in project.path.iterdir()} - {".user.yml"} == {
        ".spark",
        "dbt_project.yml",
        "logs",
        "mirror.MirroredDatabase",
        "models",
        "profiles.yml",
        "target",
    }


def test_init_makes_a_profile_that_debug_finds_nothing_wrong_with(
    clean_environment: Path, tmp_path: Path
) -> None:
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    init: list[str | Path] = [clean_environment / "dbt", "init", "fresh"]
    init += ["--profiles-dir", profiles]
    menu = subprocess.run(init, cwd=tmp_path, input="", capture_output=True, text=True).stdout
    choice = next(line for line in menu.splitlines() if "] openmirroring" in line)[1]
    shutil.rmtree(tmp_path / "fresh")
    done = subprocess.run(
        init, cwd=tmp_path, input=f"{choice}\n\n\n\n", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout
    written = (profiles / "profiles.yml").read_text()
    assert "type: openmirroring" in written
    assert "landing_zone: mirror.MirroredDatabase/Files/LandingZone" in written

    done = call(
        clean_environment / "dbt", "debug", "--profiles-dir", profiles, cwd=tmp_path / "fresh"
    )

    assert done.returncode == 0, done.stdout
    assert "All checks passed!" in done.stdout
    assert not list((tmp_path / "fresh").rglob("_scratchPad"))


def test_ctrl_c_cancels_what_runs_and_changes_nothing(project: Project) -> None:
    assert dbt(project.path, "run").returncode == 0
    before = project.state()
    endless = "range(1000000000000) where sha2(cast(id as string), 256) = 'never'"
    project.model(f"select count(*) as id from {endless}", unique_key="id")
    process = subprocess.Popen(
        [BIN / "dbt", "run"],
        cwd=project.path,
        stdout=subprocess.PIPE,
        # a shell lets what it runs in the background ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout
    for line in process.stdout:
        if b"START" in line:
            break
    time.sleep(5)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode != 0
    assert project.state() == before
    project.model("select id, 'x' as name from range(3)", unique_key="id")
    assert "unchanged" in dbt(project.path, "run").stdout
    project.assert_mirrored()


def test_the_quickstart_mirrors_two_days_of_flights(tmp_path: Path) -> None:
    project = tmp_path / "integration_tests"
    kept = shutil.ignore_patterns(".spark", "mirror.*", "target", "logs", "data")
    shutil.copytree(REPOSITORY / "integration_tests", project, ignore=kept)

    done = call(BIN / "python", project / "quickstart.py", cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    landing_zone = project / "mirror.MirroredDatabase" / "Files" / "LandingZone"
    folders = sorted(path for path in landing_zone.glob("*.schema/*"))
    assert len(folders) == 6
    for folder in folders:
        files = project / ".spark" / "warehouse" / "flights.db" / folder.name
        relation = pq.read_table(files)
        rows = some(relation)
        model = Counter(canonical((k, landed(v)) for k, v in row.items()) for row in rows)
        mirrored = content(DeltaTable(landing_zone.parents[1] / "Tables/flights" / folder.name))
        mirror = Counter(canonical(row.items()) for row in some(mirrored))
        assert mirror == model, folder.name
        assert mirrored.num_rows == relation.num_rows
    journals = [json.loads((folder / "_journal.json").read_text())["batch"] for folder in folders]
    assert {journal["publication"] for journal in journals} == {"initial", "changes"}
    assert sum(journal["rows"]["deleted"] for journal in journals) > 0


def some(table: pa.Table) -> list[dict[str, Any]]:
    """Return all rows of a small table, and a twentieth of the flights, which are very many."""
    return [row for row in table.to_pylist() if row.get("flight", 0) % 20 == 0]


def landed(value: Any) -> Any:
    """A struct lands as JSON."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else value
