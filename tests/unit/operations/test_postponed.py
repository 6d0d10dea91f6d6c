"""Batches of earlier runs that are finished only when a node needs them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.project_tables import Outcome, ProjectTables
from dbt.adapters.openmirroring.operations.recover import Recovery, logger, place_of
from tests.unit.operations.tables import publish

ORDERS = place_of("sales", "Orders")


@pytest.fixture
def unfinished(storage: Storage) -> Manifest:
    """The batch of `sales.orders` that an earlier run has committed."""
    publish(storage, completes=False)
    manifest = Manifest.read(storage, TableFolder("sales", "orders").manifest)
    assert manifest
    return manifest


def recovery(unfinished: Manifest, finish: Callable[[Manifest], Manifest | None]) -> Recovery:
    """Return a recovery that has postponed a batch.

    Args:
        finish: stands for finishing it
    """
    created = Recovery(None, lambda: None)  # type: ignore[arg-type, return-value]
    created.finish = finish  # type: ignore[method-assign, assignment]
    created.postpone(unfinished)
    return created


@pytest.mark.parametrize(
    ("schemas", "waits", "touched", "finishes", "is_postponed"),
    [
        ({"sales"}, False, {"sales"}, 1, False),
        ({"sales"}, True, set(), 0, True),
        ({"other"}, False, set(), 0, False),
    ],
)
def test_a_command_finishes_the_batches_of_its_schemas_that_need_no_waiting(
    storage: Storage,
    unfinished: Manifest,
    schemas: set[str],
    waits: bool,
    touched: set[str],
    finishes: int,
    is_postponed: bool,
) -> None:
    finished: list[Manifest] = []
    destination = SimpleNamespace(waits_for=lambda _: waits)
    asked = Recovery(destination, lambda: None)  # type: ignore[arg-type, return-value]
    asked.finish = finished.append  # type: ignore[method-assign, assignment]

    assert asked.finish_schemas(ProjectTables(storage, "shop", "sales", []), schemas) == touched

    assert len(finished) == finishes
    assert asked.is_postponed(ORDERS) == is_postponed


def warnings_of_the_rest(postponed: Recovery) -> list[str]:
    with patch.object(logger, "warning") as warning:
        postponed.tell_left()
    return [call.args[0] for call in warning.call_args_list]


def test_a_batch_that_several_nodes_need_is_finished_once_and_before_all_of_them(
    unfinished: Manifest,
) -> None:
    finished: list[Manifest] = []
    may_end = threading.Event()

    def finish(manifest: Manifest) -> Manifest:
        may_end.wait(10)
        finished.append(manifest)
        return manifest

    postponed = recovery(unfinished, finish)

    def needs() -> int:
        postponed.finish_postponed(ORDERS, is_own=False)
        return len(finished)

    with ThreadPoolExecutor(4) as pool:
        seen = [pool.submit(needs) for _ in range(4)]
        may_end.set()

    assert [each.result() for each in seen] == [1] * 4
    assert warnings_of_the_rest(postponed) == []


def test_a_batch_that_no_node_needs_is_left_and_reported_once(unfinished: Manifest) -> None:
    postponed = recovery(unfinished, lambda _: pytest.fail("it is finished"))

    postponed.finish_postponed(place_of("sales", "returns"), is_own=True)

    [told] = warnings_of_the_rest(postponed)
    assert told.startswith("sales.orders: an earlier run has left initial +1 · #1.")
    assert "dbt run-operation mirror_recover [OM710: " in told
    assert warnings_of_the_rest(postponed) == []


def fail(_: Manifest) -> None:
    raise DbtRuntimeError("Fabric has not dropped the table.")


def test_a_batch_that_cannot_be_finished_fails_its_own_node_at_once(unfinished: Manifest) -> None:
    own, other = recovery(unfinished, fail), recovery(unfinished, fail)

    with pytest.raises(DbtRuntimeError, match="has not dropped"):
        own.finish_postponed(ORDERS, is_own=True)
    with patch.object(logger, "warning") as warning:
        other.finish_postponed(ORDERS, is_own=False)

    assert "could not be recovered yet: Fabric has not dropped" in warning.call_args.args[0]


def test_a_request_finishes_each_batch_or_says_why_it_cannot(
    storage: Storage, unfinished: Manifest
) -> None:
    tables = ProjectTables(storage, "shop", "sales", [])

    finished = recovery(unfinished, lambda manifest: manifest).finish_all(tables)
    failed = recovery(unfinished, fail).finish_all(tables)

    assert finished == Outcome(("sales.orders: finished initial +1 · #1",))
    assert failed == Outcome((), ("sales.orders: Fabric has not dropped the table.",))
