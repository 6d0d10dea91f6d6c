"""The machines on which the embedded Spark runs: their locale, their user, their folders."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.functional.processes.test_processes import BIN
from tests.functional.project import Project

pytestmark = pytest.mark.needs(session="starts the embedded Spark")

# a user that the system does not know by name and that has no home, as each container has in
# OpenShift
NAMELESS = (
    *("unshare", "--user", "--map-user=4242", "--map-group=4242"),
    *("env", "-u", "HOME", "-u", "XDG_CACHE_HOME"),
)

# a file system in memory, as `docker run --tmpfs` mounts it
IN_MEMORY = (
    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c"),
    'mount -t tmpfs -o noexec none "$0" && exec "$@"',
)


def works(*command: str | Path) -> bool:
    try:
        return subprocess.run([*command, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def dbt(
    project: Project, *command: str, before: Sequence[str] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, BIN / "dbt", *command],
        cwd=project.path,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_names_and_lines_that_are_not_ascii_work_in_a_locale_that_has_ascii_only(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path / "größe")
    query = "select id, concat('ä', id) as part from range(3)"
    project.model(query, unique_key="id", partition_by="part", alias="größe")
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}

    refused = dbt(project, "run", **ascii_only)

    assert refused.returncode == 1
    assert "'gr??e' cannot be the name of a table" in refused.stdout
    assert "Set another `alias`" in refused.stdout
    assert not list((project.path / ".spark" / "warehouse").glob("*/*"))

    project.model(query, unique_key="id", partition_by="part")
    done = dbt(project, "run", **ascii_only)

    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    assert "initial +3 - #1" in done.stdout
    project.assert_mirrored()


@pytest.mark.skipif(not works(*NAMELESS), reason="needs namespaces of users")
def test_a_container_has_a_user_without_name_and_home_and_a_project_that_cannot_be_written(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path / "shop")
    project.target["landing_zone"] = str(tmp_path / "mirror.MirroredDatabase/Files/LandingZone")
    project.landing_zone = Path(project.target["landing_zone"])
    project.write_project()
    project.model("select id, 'x' as name from range(3)", unique_key="id")
    env = {"DBT_LOG_PATH": str(tmp_path / "logs"), "DBT_TARGET_PATH": str(tmp_path / "target")}
    for folder in (project.path / "models", project.path):
        folder.chmod(0o555)

    refused = dbt(project, "run", before=NAMELESS, **env)

    assert refused.returncode == 2
    assert f"cannot write to its folder, {project.path}/.spark: Permission denied" in (
        refused.stdout.replace("\n", " ")
    )
    assert "Set `spark_folder` in the profile" in refused.stdout

    (project.path / "profiles.yml").chmod(0o644)
    project.target["spark_folder"] = str(tmp_path / "spark")
    project.write_profile()
    done = dbt(project, "run", before=NAMELESS, **env)

    assert done.returncode == 0, done.stdout
    assert "initial +3 · #1" in done.stdout
    assert {path.name for path in project.path.iterdir()} == {
        *("dbt_project.yml", "models", "profiles.yml")
    }
    told = dbt(project, "debug", before=NAMELESS, **env).stdout
    assert f"Embedded Spark has its files in {tmp_path}/spark" in told


@pytest.mark.skipif(not works(*NAMELESS), reason="needs namespaces of users")
def test_spark_starts_and_stays_ready_though_the_cache_is_out_of_reach(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop")
    project.write_project()
    (tmp_path / "closed").mkdir(mode=0)
    cache = f"XDG_CACHE_HOME={tmp_path}/closed/cache"

    done = dbt(project, "debug", before=(*NAMELESS, cache))

    assert done.returncode == 0, done.stdout
    assert "Spark stays ready for" in done.stdout


@pytest.mark.skipif(not works(*IN_MEMORY, "/mnt"), reason="needs mounts of a user")
def test_a_folder_in_memory_that_forbids_to_load_libraries_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop")
    (tmp_path / "memory").mkdir()
    project.target["spark_folder"] = str(tmp_path / "memory" / "spark")
    project.write_project()

    done = dbt(project, "debug", before=(*IN_MEMORY, str(tmp_path / "memory")))

    assert done.returncode == 1
    assert "Mount it with `exec`, or set `spark_folder`" in done.stdout
