"""Tables without a node are dropped, or only by their names."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.inventory import LandedTable, published_folders
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.project_tables import (
    Outcome,
    ProjectTables,
    drop_orphans,
)
from tests.unit.operations import tables
from tests.unit.operations.tables import node


def publish(
    storage: Storage,
    *names: str,
    command: str = "first",
    target: str = "prod",
    schema: str = "sales",
) -> None:
    """Publish tables of the project `shop` in one command."""
    for name in names:
        tables.publish(storage, name, schema=schema, invocation_id=command, target=target)


def drop(
    storage: Storage,
    *nodes: dict[str, Any],
    target: str = "prod",
    has_published: Callable[[LandedTable], bool] = lambda _: True,
    dry_run: bool = False,
    schema: str | None = None,
    table: str | list[str] | None = None,
) -> Outcome:
    """Drop the orphans of a project with these nodes."""
    found = ProjectTables(storage, "shop", "sales", nodes, target)
    return drop_orphans(found, dry_run, schema, table, has_published)


def left(storage: Storage) -> list[str]:
    return sorted(map(str, published_folders(storage)))


def test_a_table_is_of_this_project_if_others_link_it_with_what_is_here(storage: Storage) -> None:
    publish(storage, "old", "older", command="first")
    publish(storage, "older", "orders", command="second")

    drop(storage, node("orders"))

    assert left(storage) == ["sales.orders"]


def of_another_target(storage: Storage) -> None:
    """A model is enabled if `target.name == 'prod'`; both targets have one schema."""
    publish(storage, "orders", "theirs", target="prod")
    publish(storage, "orders", target="dev", command="second")


def of_another_schema(storage: Storage) -> None:
    """Two people have the target `dev`, each with a schema of her own."""
    publish(storage, "orders", target="dev")
    publish(storage, "theirs", target="dev", schema="dev_bob", command="second")


def of_another_project(storage: Storage) -> None:
    """Two projects have the name that `dbt init` proposes."""
    publish(storage, "orders", target="dev")
    publish(storage, "theirs", target="dev", command="second")


@pytest.mark.parametrize(
    ("publish_theirs", "why"),
    [
        (
            of_another_target,
            "the target 'prod' published it last; here, model.shop.theirs is gone",
        ),
        (of_another_schema, "this target has no schema 'dev_bob'; here, "),
        (of_another_project, "it may be of another project 'shop'; here, "),
    ],
)
def test_tables_that_others_may_publish_are_listed_and_dropped_only_by_name(
    storage: Storage, publish_theirs: Callable[[Storage], None], why: str
) -> None:
    publish_theirs(storage)
    before = left(storage)
    (theirs,) = [table for table in before if table.endswith("theirs")]

    for schema in (None, theirs.partition(".")[0]):
        outcome = drop(storage, node("orders"), target="dev", schema=schema)

        assert left(storage) == before
        assert "There are no orphans" in outcome.lines[0]
        assert outcome.lines[2].startswith(theirs)
        assert why in outcome.lines[2]
        assert not any("dry_run: false" in line for line in outcome.lines)

    assert drop(storage, node("orders"), target="dev", table=theirs).failed == ()
    assert left(storage) == ["sales.orders"]


def test_a_table_that_another_spark_has_published_links_nothing(storage: Storage) -> None:
    """Two projects of one name have a model of one name too, which only one has published."""
    publish(storage, "example", "theirs")
    publish(storage, "ours", "old", command="second")
    nodes = (node("example"), node("ours"))

    drop(storage, *nodes, has_published=lambda table: str(table.folder) != "sales.example")

    assert left(storage) == ["sales.example", "sales.ours", "sales.theirs"]


def test_a_schema_limits_what_is_dropped(storage: Storage) -> None:
    publish(storage, "orders", "old")
    publish(storage, "old", schema="staging")
    nodes = (node("orders"), node("raw", schema="staging"))

    drop(storage, *nodes, schema="staging")
    assert left(storage) == ["sales.old", "sales.orders"]

    [line] = drop(storage, *nodes, schema="nowhere").lines
    assert line == "There are no orphans in the schema 'nowhere'."


@pytest.mark.parametrize(
    "named",
    [
        *("sales.orders", "sales.nothing", "sales.others", "sales.nobodys"),
        ["sales.old", "orders"],
    ],
)
def test_a_table_that_is_no_orphan_cannot_be_dropped(
    storage: Storage, named: str | list[str]
) -> None:
    publish(storage, "orders", "old")
    tables.publish(storage, "others", project="other", invocation_id="first", target="prod")
    storage.write("sales.schema/nobodys/_metadata.json", b"{}")

    with pytest.raises(DbtRuntimeError, match="no orphan"):
        drop(storage, node("orders"), table=named)
    not_ours = ["sales.nobodys", "sales.orders", "sales.others"]
    assert left(storage) == sorted(["sales.old", *not_ours])

    drop(storage, node("orders"))
    assert left(storage) == not_ours


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"schema": "sales"},
        {"table": ["sales.it's old"]},
        {"table": ["sales.it's old", "sales.older"]},
        {"table": ["sales.old, older"]},
    ],
    ids=str,
)
def test_the_command_that_is_proposed_drops_what_was_listed(
    storage: Storage, given: dict[str, Any]
) -> None:
    publish(storage, "orders", "it's old", "older", "old, older")
    listed = drop(storage, node("orders"), dry_run=True, **given)
    named = [line.partition("  ")[0] for line in listed.lines[1:-1]]

    _, command = listed.lines[-1].split("To drop them, in the mirror too: ")
    *words, arguments = shlex.split(command)
    drop(storage, node("orders"), **yaml.safe_load(arguments))

    assert words == ["dbt", "run-operation", "mirror_drop_orphans", "--args"]
    published = {"sales.it's old", "sales.older", "sales.orders", "sales.old, older"}
    assert left(storage) == sorted(published - {*named})
