"""The recipes of docs/recipes.md, as the page has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner

from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests.functional.project import Project
from tests.matrix import ROOT
from tests.pages import blocks_of

PAGE = list(blocks_of(ROOT / "docs" / "recipes.md"))
TIME = re.compile(r"\d{4}-\d\d-\d\d[ T][\d:.]+")


def example(part: str) -> str:
    """The example that has this part."""
    [text] = [block.text for block in PAGE if part in block.text]
    return text


def tables(text: str) -> list[list[str]]:
    """The lines of tables in a text, without times and spaces."""
    lines = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    return [[TIME.sub("TIME", re.sub("-{3,}", "--", c.strip())) for c in line] for line in lines]


# Rows that the source deletes

OPEN, DELETED = "(1, 'open'), (2, 'open'), (3, 'open')", "(1, 'open'), (3, 'paid')"


@pytest.fixture
def shop(project: Project) -> Project:
    """The models and the snapshot of the page."""
    for block in PAGE:
        if block.title.startswith(("models/", "snapshots/")):
            project.write(block.title, block.text)
    return project


def build(shop: Project, rows: str, *args: str) -> dict[str, str]:
    """Build everything of these orders; what is said of each node, by its name."""
    shop.model(f"select * from values {rows} as t(id, status)", unique_key="id")
    shop.run(*args, command="build")
    for table in ("orders", "orders_archive", "orders_flagged", "orders_history"):
        shop.assert_mirrored(table)
    messages = {n: r["adapter_response"]["_message"] for n, r in shop.results().items()}
    # how many files a load has, and so their numbers, is up to the format of the table
    return {name: message.partition(" · ")[0] for name, message in messages.items()}


@pytest.mark.slow
def test_rows_that_the_source_deletes_stay_as_the_page_says_and_may_come_back(
    shop: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    page = example("orders_archive` ...")
    build(shop, OPEN)

    messages = build(shop, DELETED)

    assert messages == dict(re.findall(r"`sales`\.`(\w+)` \.+ \[(.+) · #", page))
    archive = shop.sql(f"select * from {shop.schema}.orders_archive order by id")
    assert [tuple(row) for row in archive] == [(1, "open"), (2, "open"), (3, "paid")]
    capsys.readouterr()
    for query in re.findall(r'\$ dbt show --inline "(.+)"', page):
        dbtRunner().invoke(shop.arguments("show", "--inline", query)[:-1])
    assert tables(capsys.readouterr().out) == tables(page)

    messages = build(shop, DELETED, "--full-refresh")

    assert messages["orders"].startswith("rebuild +2")
    assert messages["orders_archive"].startswith("unchanged")
    assert messages["orders_flagged"].startswith("unchanged")

    build(shop, OPEN)

    flagged = shop.sql(f"select id from {shop.schema}.orders_flagged where deleted_at is null")
    assert {id for (id,) in flagged} == {1, 2, 3}
    deleted = f"select id from {shop.schema}.orders_history where dbt_is_deleted = 'True'"
    assert [tuple(row) for row in shop.sql(deleted)] == [(2,)]
    assert shop.sql(f"{deleted} and dbt_valid_to is null") == []


# Refresh a semantic model

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

# in place of Azure's command: keeps what it is asked, and has the refreshes of the test
AZ = """\
#!{python}
import json, pathlib, sys
folder = pathlib.Path(__file__).parent
with (folder / "asked").open("a") as asked:
    print(json.dumps(sys.argv[1:]), file=asked)
if "get" in sys.argv:
    print((folder / "refreshes").read_text())
"""


def shell(project: Project, command: str, *folders: Path, **variables: str) -> Any:
    """Run a command in the project, with dbt and the programs of folders."""
    path = ":".join(map(str, (*folders, Path(sys.executable).parent, os.environ["PATH"])))
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=project.path,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def refresh(
    project: Project, *before: tuple[str, str], succeeds: bool = True
) -> tuple[str, list[str]]:
    """Run the step of the page, after refreshes of these states and times, the last one first.

    Returns:
        what it prints, and the requests that change something
    """
    [script] = [block.text for block in PAGE if block.title == "refresh.sh"]
    value = [{"status": status, "startTime": time} for status, time in before]
    project.write("refresh.sh", script)
    project.write("bin/az", AZ.format(python=sys.executable))
    project.write("bin/refreshes", json.dumps({"value": value}))
    project.write("bin/asked", "")
    folder = project.path / "bin"
    (folder / "az").chmod(0o755)
    ids = {"WORKSPACE_ID": "w0", "SEMANTIC_MODEL_ID": "m0"}
    result = shell(project, "bash refresh.sh", folder, **ids)
    assert bool(result.returncode) != succeeds, result
    asked = [json.loads(line) for line in (folder / "asked").read_text().splitlines()]
    return result.stdout, [" ".join(each) for each in asked if "get" not in each]


REFRESH = (
    "rest --resource https://analysis.windows.net/powerbi/api "
    "--url https://api.powerbi.com/v1.0/myorg/groups/w0/datasets/m0/refreshes "
    '--method post --body {"type": "Full"}'
)
BEFORE, AFTER = "2020-01-01T05:02:11.153Z", "2999-01-01T05:02:11.153Z"


@pytest.mark.slow
@pytest.mark.needs(local="the process that asks for the status would need the server of the tests")
def test_a_semantic_model_is_refreshed_only_if_something_was_published_and_applied(
    project: Project,
) -> None:
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "never_published")
    assert refresh(project)[1] == []
    project.run("--select", "orders")
    told = [TIME.sub("TIME", line) for line in example("$ bash refresh.sh").splitlines()]

    printed, asked = refresh(project, ("Completed", BEFORE))

    assert asked == [REFRESH]
    assert TIME.sub("TIME", printed).strip() in told
    assert refresh(project)[1] == [REFRESH]
    assert refresh(project, ("Failed", AFTER), ("Completed", BEFORE))[1] == [REFRESH]

    assert project.run("--select", "orders")["publication"] == "unchanged"
    printed, asked = refresh(project, ("Completed", AFTER))

    assert asked == []
    assert TIME.sub("TIME", printed).strip() in told

    Replicator(project.landing_zone).replicate(project.schema, "orders")
    assert refresh(project)[1] == [REFRESH]
    project.model(f"{ORDERS} where id = 1", unique_key="id")
    project.run("--select", "orders")
    printed, asked = refresh(project, ("Completed", BEFORE), succeeds=False)

    assert asked == []
    assert "not applied everything yet" in printed


# How late the rows are


@pytest.mark.slow
@pytest.mark.needs(local="Fabric has something else to say of a table")
def test_the_json_of_the_check_tells_how_late_rows_are_applied(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    project.model(ORDERS, "customers", unique_key="id")
    project.run()
    for table in ("orders", "customers"):
        Replicator(project.landing_zone).replicate(project.schema, table)
    command, shown = example("fromdate").removeprefix("$ ").split("sales.", 1)

    printed = shell(project, command)

    assert not printed.returncode, printed
    figures = re.findall(rf"^{project.schema}\.(\w+) \d+$", printed.stdout, re.MULTILINE)
    assert figures == re.findall(r"(\w+) \d+$", f"sales.{shown}", re.MULTILINE)
    assert len(figures) == 2
