"""The check of the landing zone by `dbt debug`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.errors import ConcurrentPublicationError
from dbt.adapters.openmirroring.landing_zone.storage import Storage


@pytest.fixture
def destination(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Destination:
    monkeypatch.setattr(Destination, "storage", lambda _: storage)
    return Destination(
        Target(landing_zone="LandingZone"), project=lambda: tmp_path, warehouse=lambda: None
    )


@pytest.mark.parametrize("left", [[], ["file"], ["renamed"], ["file", "renamed"]])
def test_a_check_after_one_that_was_killed_finds_nothing_wrong(
    destination: Destination, storage: Storage, left: list[str]
) -> None:
    for name in left:
        storage.write(f"_scratchPad/_debug/{name}", b"")

    destination.check()

    assert storage.list("_scratchPad") == []


def test_a_check_leaves_the_file_of_another_check_alone(
    destination: Destination, storage: Storage
) -> None:
    with storage.lock("_scratchPad/_debug"):
        storage.write("_scratchPad/_debug/file", b"")

        with pytest.raises(ConcurrentPublicationError):
            destination.check()

        assert [entry.name for entry in storage.list("_scratchPad/_debug")] == ["file"]
