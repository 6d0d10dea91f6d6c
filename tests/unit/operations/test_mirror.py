"""What `dbt debug` tries in the landing zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.errors import ConcurrentPublicationError
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.mirror import Mirror
from dbt.adapters.openmirroring.operations.target import Target


@pytest.fixture
def mirror(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    monkeypatch.setattr(Mirror, "storage", lambda _: storage)
    return Mirror(Target("LandingZone"), project=lambda: tmp_path, warehouse=lambda: None)


@pytest.mark.parametrize("left", [[], ["file"], ["renamed"], ["file", "renamed"]])
def test_a_check_after_one_that_was_killed_finds_nothing_wrong(
    mirror: Mirror, storage: Storage, left: list[str]
) -> None:
    for name in left:
        storage.write(f"_scratchPad/_debug/{name}", b"")

    mirror.check()

    assert storage.list("") == []


def test_a_check_leaves_the_file_of_another_check_alone(mirror: Mirror, storage: Storage) -> None:
    with storage.lock("_scratchPad/_debug"):
        storage.write("_scratchPad/_debug/file", b"")

        with pytest.raises(ConcurrentPublicationError):
            mirror.check()

        assert [entry.name for entry in storage.list("_scratchPad/_debug")] == ["file"]
