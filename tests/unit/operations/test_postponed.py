"""Batches of earlier runs that are finished only when a node needs them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.recover import Postponed, logger, place_of
from tests.unit.operations.tables import commit

ORDERS = place_of("sales", "Orders")


@pytest.fixture
def unfinished(storage: Storage) -> Manifest:
    """The batch of `sales.orders` that an earlier run has committed."""
    return commit(storage, TableFolder("sales", "orders"))


def warnings_of_the_rest(postponed: Postponed) -> list[str]:
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

    postponed = Postponed(finish)
    postponed.add(unfinished)

    def needs() -> int:
        postponed.finish(ORDERS, is_own=False)
        return len(finished)

    with ThreadPoolExecutor(4) as pool:
        seen = [pool.submit(needs) for _ in range(4)]
        may_end.set()

    assert [each.result() for each in seen] == [1] * 4
    assert warnings_of_the_rest(postponed) == []


def test_a_batch_that_no_node_needs_is_left_and_told_once(unfinished: Manifest) -> None:
    postponed = Postponed(lambda _: pytest.fail("it is finished"))
    postponed.add(unfinished)

    postponed.finish(place_of("sales", "returns"), is_own=True)

    [told] = warnings_of_the_rest(postponed)
    assert told.startswith("sales.orders: an earlier run has left initial +1 · #1.")
    assert told.endswith("dbt run-operation mirror_recover")
    assert warnings_of_the_rest(postponed) == []


def test_a_batch_that_cannot_be_finished_fails_its_own_node_at_once(unfinished: Manifest) -> None:
    def finish(_: Manifest) -> None:
        raise DbtRuntimeError("Fabric has not dropped the table.")

    own, other = Postponed(finish), Postponed(finish)
    for postponed in (own, other):
        postponed.add(unfinished)

    with pytest.raises(DbtRuntimeError, match="has not dropped"):
        own.finish(ORDERS, is_own=True)
    with patch.object(logger, "warning") as warning:
        other.finish(ORDERS, is_own=False)

    assert "could not be recovered yet: Fabric has not dropped" in warning.call_args.args[0]
