"""Machines that live for one command publish what has changed since the one before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.functional.processes.test_ready_spark import without_java
from tests.recipes.cloud import Place, reachable
from tests.recipes.dockerfile import Dockerfile
from tests.recipes.recipe import Recipe

# what is changed in a model between two machines, and the rows that are in the files then
NIGHTS: list[tuple[str, str, dict[str, list[int]]]] = [
    ("id % 3", "id % 3", {"orders": [6], "customers": [3]}),
    ("range(6)", "range(8)", {"orders": [6, 2], "customers": [3, 2]}),
    ("id % 3", "if(id = 5, 3, id % 3)", {"orders": [6, 2, 1], "customers": [3, 2, 2]}),
]
AMOUNTS = {0: 90, 1: 120, 2: 20, 3: 50}


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    recipe = Recipe("Machines that live for one command", tmp_path / "shop")
    recipe.set_up()
    return recipe


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "cloud").mkdir()
    with reachable(tmp_path / "cloud") as found:
        yield found


def move(recipe: Recipe, to: Path) -> Path:
    """Move the files of a recipe, and leave its environment."""
    shutil.copytree(recipe.folder, to, symlinks=True)
    (to / ".venv").unlink()
    for path in recipe.folder.iterdir():
        if path.name != ".venv":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return to


def home_of(recipe: Recipe) -> Path:
    return recipe.folder.with_name("home")


def start_machine(recipe: Recipe, files: Path) -> None:
    """Leave nothing on the machine but some files, and the packages."""
    environment = (recipe.folder / ".venv").readlink()
    shutil.rmtree(home_of(recipe), ignore_errors=True)
    shutil.rmtree(recipe.folder)
    shutil.copytree(files, recipe.folder, symlinks=True)
    (recipe.folder / ".venv").symlink_to(environment)


def test_each_run_of_the_workflow_publishes_what_has_changed_and_a_dry_run_says_so(
    recipe: Recipe, place: Place, tmp_path: Path
) -> None:
    workflow = yaml.safe_load((recipe.folder / ".github/workflows/nightly.yml").read_text())
    commands = [step.get("run", "pip ") for step in workflow["jobs"]["build"]["steps"]]
    # the environment has the packages
    steps = [each for each in commands if not each.startswith("pip ")]
    path = f"{place.programs}:{recipe.folder}/.venv/bin:{os.environ['PATH']}"
    environment = {**place.network, "HOME": str(home_of(recipe)), "PATH": path}
    project = move(recipe, tmp_path / "project")
    for old, new, rows in NIGHTS:
        start_machine(recipe, project)
        recipe.replace("models/orders.sql", old, new)
        if rows == NIGHTS[1][2]:
            dry_run(recipe, place, environment)
            start_machine(recipe, project)
            recipe.replace("models/orders.sql", old, new)

        for step in steps:
            assert not recipe.shell(step, environment).returncode

        assert place.cloud.published() == rows
        shutil.copy(recipe.folder / "models" / "orders.sql", project / "models")
    assert place.cloud.amounts == AMOUNTS


def dry_run(recipe: Recipe, place: Place, environment: dict[str, str]) -> None:
    """Check a pull request against what is published, with rights to read."""
    profiles = yaml.safe_load((recipe.folder / "profiles.yml").read_text())
    outputs = profiles["shop"]["outputs"]
    outputs["ci"] = {**outputs["github"], "dry_run": True}
    recipe.write("profiles.yml", yaml.safe_dump(profiles))
    before, rows = place.cloud.changes, place.cloud.published()

    done = recipe.shell("dbt build --target ci", environment)

    assert not done.returncode
    assert done.stdout.count("would publish +") == 2
    assert place.cloud.changes == before
    assert place.cloud.published() == rows


def test_each_container_starts_from_the_image_of_classes_and_publishes_what_has_changed(
    recipe: Recipe, place: Place, tmp_path: Path
) -> None:
    dockerfile = Dockerfile(move(recipe, tmp_path / "context"), recipe)
    java = without_java(tmp_path / "java")
    path = f"{recipe.folder}/.venv/bin:{java['PATH']}"
    built = list(dockerfile.build({"PATH": path, "HOME": str(tmp_path / "builder")}))
    assert "The embedded Spark has started and ended with" in built[0]
    image = move(recipe, tmp_path / "image")
    environment = {
        **{"PATH": path, "HOME": str(home_of(recipe))},
        **{**dockerfile.environment, **place.network, **place.identity},
        "JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={tmp_path}/classes.log",
    }
    for old, new, rows in NIGHTS:
        start_machine(recipe, image)
        recipe.replace("models/orders.sql", old, new)

        assert not recipe.shell(dockerfile.command, environment).returncode

        loaded = (tmp_path / "classes.log").read_text().splitlines()
        assert sum("org.apache.spark" in x and "shared objects file" in x for x in loaded) > 1000
        assert place.cloud.published() == rows
        shutil.copy(recipe.folder / "models" / "orders.sql", image / "models")
    assert place.cloud.amounts == AMOUNTS
