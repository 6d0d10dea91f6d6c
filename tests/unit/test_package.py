"""The package: its bounds, the notes of its releases, and the workflows that test it."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import hatch_build
from tests.matrix import COMBINATIONS
from tests.release import ReleaseError, notes

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
URL = "https://github.com/owner/repository"
CHANGELOG = """# Changelog

This file follows Keep a Changelog.

## 0.3.0 (unreleased)

- Not yet.

## 0.2.0 (2026-12-01)

- **Models.** Each [kind of
  change](docs/changes.md#rows) maps to one of these. See
  [dbt](https://docs.getdbt.com).
  - A table is rebuilt.
- **Files.** Parquet.

## 0.1.0 (2026-11-01)
"""


def requirements() -> dict[str, SpecifierSet]:
    """What `pip install dbt-openmirroring` wants of other packages, without extras."""
    project = re.search(r"^dependencies = \[\n(.*?)^\]", PYPROJECT, re.M | re.S)
    assert project
    wanted = [Requirement(text) for text in re.findall(r'^ +"(.+)",$', project[1], re.M)]
    return {requirement.name: requirement.specifier for requirement in wanted}


def locked(package: str) -> list[str]:
    """The versions of a package in the lock, which may be one for each Python."""
    lock = (ROOT / "requirements.lock").read_text()
    return re.findall(rf"^{package}==([^ ]+)", lock, re.MULTILINE)


def test_the_description_on_the_index_links_to_the_files_of_its_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REPOSITORY_URL", f"{URL}/")
    project: dict[str, Any] = {"version": "0.2.0"}

    hatch_build.ProjectMetadata(str(ROOT), {}).update(project)

    links = re.findall(r"\]\(([^)\s]+)\)", project["readme"]["text"])
    assert links
    assert not [link for link in links if not link.startswith("https://")]
    assert project["urls"]["Issues"] == f"{URL}/issues"


def test_images_of_the_description_are_linked_as_files() -> None:
    text = "[a](b.md#c) ![](d/e.png) [f](https://g) [h](#i)"

    assert hatch_build.absolute_links(text, URL, "v1") == (
        f"[a]({URL}/blob/v1/b.md#c) ![]({URL}/raw/v1/d/e.png) [f](https://g) [h](#i)"
    )


def test_the_notes_of_a_release_are_its_section_with_absolute_links() -> None:
    assert notes("v0.2.0", "0.2.0", CHANGELOG, URL) == (
        "- **Models.** Each [kind of change]"
        f"({URL}/blob/v0.2.0/docs/changes.md#rows) maps to one of these. "
        "See [dbt](https://docs.getdbt.com).\n"
        "  - A table is rebuilt.\n"
        "- **Files.** Parquet.\n"
    )


@pytest.mark.parametrize(
    ("tag", "version", "message"),
    [
        ("v0.2.1", "0.2.0", r"The tag is v0\.2\.1, but __version__\.py has 0\.2\.0"),
        ("0.2.0", "0.2.0", r"The tag is 0\.2\.0"),
        ("v0.3.0", "0.3.0", r"no date for 0\.3\.0: '## 0\.3\.0 \(unreleased\)'"),
        ("v0.1.0", "0.1.0", r"says nothing about 0\.1\.0"),
        ("v0.4.0", "0.4.0", r"no section '## 0\.4\.0 \(<date>\)'"),
    ],
)
def test_a_release_without_notes_or_with_another_version_is_refused(
    tag: str, version: str, message: str
) -> None:
    with pytest.raises(ReleaseError, match=message):
        notes(tag, version, CHANGELOG, URL)


# the lists of packages of Fabric's runtimes 1.3, 2.0 with Spark 4.0 and 2.0 with Spark 4.1:
# https://github.com/microsoft/synapse-spark-runtime
@pytest.mark.parametrize(
    "installed", ["3.5.1.5.4.20240407", "4.0.0.5.5.20250918.2", "4.1.1.5.5.20260428.5"]
)
def test_pip_keeps_the_pyspark_of_a_fabric_notebook(installed: str) -> None:
    assert requirements()["pyspark"].contains(installed)
    for other in requirements():
        for text in metadata.requires(other) or []:
            requirement = Requirement(text)
            assert requirement.name != "pyspark" or requirement.marker, other


@pytest.mark.parametrize("package", ["dbt-core", "dbt-spark", "pyspark"])
def test_the_newest_version_that_is_allowed_is_the_one_that_is_tested(package: str) -> None:
    newest = max(tuple(map(int, version.split(".")[:2])) for version in locked(package))
    allowed = requirements()[package]

    assert allowed.contains(f"{newest[0]}.{newest[1]}.99")
    assert not allowed.contains(f"{newest[0]}.{newest[1] + 1}.0")


def test_github_runs_every_combination_of_versions_and_every_python_of_the_index() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    shown = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PYPROJECT)

    combinations = jobs["spark"]["strategy"]["matrix"]["combination"]
    assert combinations == list(range(1, len(COMBINATIONS) + 1))
    assert jobs["python"]["strategy"]["matrix"]["python"] == shown
