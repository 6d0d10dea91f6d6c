"""Mirrored tables that cannot be read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtRuntimeError
from deltalake import write_deltalake

from dbt.adapters.openmirroring.destination.replica import onelake_replica
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import file_url
from dbt.adapters.openmirroring.landing_zone.onelake.storage import StagingFolder


@pytest.mark.parametrize("fate", ["gone", "damaged"])
def test_a_file_that_cannot_be_read_is_an_error_of_dbt_and_leaves_no_copy(
    tmp_path: Path, fate: str
) -> None:
    table = tmp_path / "orders"
    write_deltalake(table, pa.table({"id": [1, 2, 3]}))
    (data,) = table.glob("*.parquet")
    data.unlink() if fate == "gone" else data.write_bytes(data.read_bytes()[:20])
    place: Any = SimpleNamespace(mirrored_table=lambda _: str(table))
    credential: Any = SimpleNamespace(get_token=lambda _: SimpleNamespace(token="t"))
    staging = StagingFolder(file_url(tmp_path / "staging"))

    with (
        pytest.raises(DbtRuntimeError, match=r"shop\.orders cannot be read: .*\.parquet"),
        onelake_replica(place, credential, TableFolder("shop", "orders"), ("id",), staging),
    ):
        pass

    assert list((tmp_path / "staging").iterdir()) == []
