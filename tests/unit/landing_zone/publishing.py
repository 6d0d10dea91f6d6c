"""Publications as a run of dbt does them, with files that no Spark has written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service.monitoring import Service

TABLE = TableFolder("sales", "orders")
OWNER = Owner("shop", "model.shop.orders", "sales")
DEFINITION = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
BY_TIME = replace(DEFINITION, file_detection="last_update_time")

Files = dict[str, bytes | None]


@contextmanager
def publication(
    storage: Storage,
    owner: Owner = OWNER,
    table: TableFolder = TABLE,
    service: Service | None = None,
) -> Iterator[Publication]:
    opened = Publication(storage, table, owner, service)
    try:
        yield opened
    finally:
        opened.close()


def stage(storage: Storage, opened: Publication, contents: list[bytes]) -> None:
    """Stand in for Spark: the files, and what it leaves beside them."""
    opened.staging_url("rows")  # Spark is told it
    folder = f"{opened.table.staging(opened.batch_id)}/rows"
    for i, content in enumerate(contents):
        storage.write(f"{folder}/part-{i}.parquet", content)
        storage.write(f"{folder}/.part-{i}.parquet.crc", b"")
        storage.write(f"{folder}/_SUCCESS", b"")


def planned(
    opened: Publication,
    kind: str,
    rows: int = 1,
    definition: TableDefinition = DEFINITION,
    reason: str = "",
) -> Plan:
    return Plan(kind, reason, definition, RowCounts(rows), journal=opened.journal())


def commit(
    storage: Storage,
    opened: Publication,
    kind: str,
    contents: list[bytes],
    definition: TableDefinition = DEFINITION,
    reason: str = "",
) -> Manifest:
    plan = planned(opened, kind, len(contents), definition, reason)
    stage(storage, opened, contents)
    return opened.commit(plan, opened.staged_files.written(plan) if contents else [])


def finish(opened: Publication, manifest: Manifest) -> None:
    opened.publish(manifest)
    opened.record(manifest)
    opened.complete(manifest)


def publish(
    storage: Storage,
    kind: str,
    contents: list[bytes],
    definition: TableDefinition = DEFINITION,
    owner: Owner = OWNER,
    table: TableFolder = TABLE,
    reason: str = "",
) -> str:
    """Publish a batch, and return its id."""
    with publication(storage, owner, table) as opened:
        finish(opened, commit(storage, opened, kind, contents, definition, reason))
        return opened.batch_id


def leave(
    storage: Storage,
    kind: str,
    contents: list[bytes],
    definition: TableDefinition = DEFINITION,
    table: TableFolder = TABLE,
) -> Manifest:
    """Commit a batch, and end before any of its files is published."""
    with publication(storage, table=table) as opened:
        return commit(storage, opened, kind, contents, definition)


def recover(storage: Storage) -> bool:
    """Finish what an earlier run has left. Return whether there was something."""
    with publication(storage) as opened:
        manifest = opened.pending()
        if manifest:
            finish(opened, manifest)
        return manifest is not None


class Killed(BaseException):
    """The process ended here."""


class DyingStorage:
    """A storage whose process dies before its n-th change: that is, just after the one before."""

    def __init__(self, storage: Storage, dies_at: int) -> None:
        self._storage = storage
        self._left = dies_at

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)
        if name not in ("write", "create", "touch", "rename", "flush", "delete"):
            return method

        def change(*args: Any) -> Any:
            self._left -= 1
            if self._left <= 0:
                raise Killed
            return method(*args)

        return change


def number(n: int) -> str:
    return f"{n:020d}.parquet"


def data_files(storage: Storage) -> Files:
    return {
        entry.name: storage.read(f"{TABLE.path}/{entry.name}")
        for entry in storage.list(TABLE.path)
        if not entry.name.startswith("_")
    }


def files_after(before: Files, kind: str, contents: list[bytes], unique: str = "") -> Files:
    """The data files after a batch.

    Args:
        before: the data files before it
        unique: what makes the names of files without an order unique
    """
    kept = before if kind == "changes" else {}
    new = enumerate(contents, len(kept) + 1)
    return {**kept, **{f"{n:020d}{unique}.parquet": content for n, content in new}}
