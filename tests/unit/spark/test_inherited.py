"""A JVM is used again only if the next command would pass on the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.embedded.settings import inherited, variables


@pytest.fixture
def java(tmp_path: Path) -> Path:
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text("17")
    return home


def differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def found(home: Path, java: Path, **settings: str) -> dict[str, str]:
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    return inherited(home, settings, java, variables()[0])


def test_nothing_differs_between_two_commands_of_different_terminals_and_tasks(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found(tmp_path / "spark", java)
    for name in ("TERM", "SHLVL", "GITHUB_STEP_SUMMARY", "AIRFLOW_CTX_DAG_RUN_ID", "DBT_TARGET"):
        monkeypatch.setenv(name, "another")

    assert found(tmp_path / "spark", java) == before
    assert "TERM" in variables()[1]


@pytest.mark.parametrize("name", ["PATH", "AWS_SECRET_ACCESS_KEY", "SHOP", "TZ", "TERMS"])
def test_a_variable_that_java_could_read_differs(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = found(tmp_path / "spark", java)
    monkeypatch.setenv(name, "another")

    assert differing(before, found(tmp_path / "spark", java)) == {f"variable {name}"}


def test_settings_are_compared_and_the_jars_that_they_name_but_not_logs(
    tmp_path: Path, java: Path
) -> None:
    jar, log = tmp_path / "a.jar", tmp_path / "gc.log"
    settings = {"spark.jars": f"file:{jar},b.jar", "options": f"-Xlog:gc:file={log}"}
    for path in (jar, log):
        path.write_text("1")
    before = found(tmp_path / "spark", java, **settings)
    log.write_text("12")
    assert found(tmp_path / "spark", java, **settings) == before

    jar.write_text("12")

    assert differing(before, found(tmp_path / "spark", java, **settings)) == {"files of settings"}
    settings["options"] = ""
    names = {"files of settings", "setting options"}
    assert differing(before, found(tmp_path / "spark", java, **settings)) == names


def test_a_file_of_a_folder_of_configuration_differs(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))
    before = found(tmp_path / "spark", java)

    (folder / "core-site.xml").write_text("<configuration/>")

    assert differing(before, found(tmp_path / "spark", java)) == {"files of settings"}


@pytest.mark.parametrize("part", [".", "tmp"])
def test_a_folder_in_the_place_of_sparks_folder_differs(
    tmp_path: Path, java: Path, part: str
) -> None:
    home = tmp_path / "spark"
    before = found(home, java)

    (home / part).rename(tmp_path / "moved")

    assert differing(before, found(home, java)) == {"folder of Spark"}


def test_another_java_at_the_same_place_and_another_working_directory_differ(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found(tmp_path / "spark", java)
    (java / "release").write_text("21.0")
    assert differing(before, found(tmp_path / "spark", java)) == {"Java"}
    monkeypatch.chdir(tmp_path)

    assert differing(before, found(tmp_path / "spark", java)) == {"Java", "working directory"}


def test_other_permissions_of_new_files_differ(tmp_path: Path, java: Path) -> None:
    before = found(tmp_path / "spark", java)
    umask = os.umask(0o007)
    try:
        assert differing(before, found(tmp_path / "spark", java)) == {"limits"}
    finally:
        os.umask(umask)


def test_no_value_is_passed_on_that_could_be_a_secret(tmp_path: Path, java: Path) -> None:
    values = found(tmp_path / "spark", java, secret="s3cret").values()

    assert not [value for value in values if "s3cret" in value]
