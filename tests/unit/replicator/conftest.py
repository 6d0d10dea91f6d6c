from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.replicator.item import Item


@pytest.fixture
def item(tmp_path: Path) -> Item:
    return Item(tmp_path / "mirror.MirroredDatabase")
