import json
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    Batch,
    MirroredColumn,
    Owner,
    RowCounts,
    StagedFile,
    TableDefinition,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest, _checksum
from dbt.adapters.openmirroring.node.response import MirrorResponse

ID, HELD, PREVIOUS = new_batch_id(), new_batch_id(), new_batch_id()
DEFINITION = TableDefinition((MirroredColumn("ünï `x`", "int", "int"),), ("ünï `x`",), "parquet")


def batch(publication: str, rows: RowCounts, first: int | None, last: int, reason: str) -> Batch:
    owner = Owner("shop", "model.shop.orders", "sales")
    files = last - first + 1 if first else 0
    return Batch(
        *(ID, ID, publication, reason, owner, DEFINITION, rows, "parquet"),
        *(first, last, files, 10 * files, 7),
    )


TIME = datetime(2026, 11, 21, 17, 39, 12, 345678, timezone.utc)
BATCH = batch("changes", RowCounts(120, 30, 4), 18, 19, "")


def test_a_manifest_is_read_as_it_was_written() -> None:
    files = (StagedFile("part-0.parquet", 10), StagedFile("part-1.parquet", 10))
    manifest = Manifest(BATCH, TableFolder("sales", "orders"), ID, files)
    assert Manifest.from_json(manifest.to_json(), manifest.table.manifest) == manifest


@pytest.mark.parametrize(
    ("properties", "build"),
    [
        ({"held": None, "ending": "swap"}, ID),
        ({"held": None}, ID),
        ({"held": HELD, "ending": "held"}, HELD),
        ({"held": HELD}, HELD),
        ({"held": None, "ending": "none"}, PREVIOUS),
    ],
    ids=["swap", "first ones", "held", "held, first ones", "none"],
)
def test_a_manifest_of_version_1_publishes_the_build_that_it_names(
    properties: dict[str, str | None], build: str
) -> None:
    files = (StagedFile("part-0.parquet", 10), StagedFile("part-1.parquet", 10))
    table = TableFolder("sales", "orders")
    manifest = Manifest(replace(BATCH, build=build), table, PREVIOUS, files)
    data = json.loads(manifest.to_json())
    del data["checksum"], data["batch"]["build"]
    data = {**data, "version": 1, **properties}
    content = json.dumps({**data, "checksum": _checksum(data)}).encode()

    assert Manifest.from_json(content, table.manifest) == manifest


def test_a_journal_is_read_as_it_was_written() -> None:
    journal = Journal.of(BATCH, TIME)
    assert Journal.from_json(journal.to_json(), "here") == journal
    assert journal.published_at == "2026-11-21T17:39:12.345+00:00"


def test_batch_ids_are_unique_and_fit_into_a_table_name() -> None:
    ids = {new_batch_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(batch_id.isalnum() and batch_id.lower() == batch_id for batch_id in ids)


def test_the_log_line_says_what_happened_to_the_mirror() -> None:
    def line(*arguments: object) -> str:
        return str(MirrorResponse.of(batch(*arguments)))  # type: ignore[arg-type]

    rows = RowCounts(120, 30, 4)
    assert line("changes", rows, 18, 18, "") == "+120 ~30 -4 · #18"
    assert line("changes", rows, 18, 19, "column added: a") == (
        "+120 ~30 -4 · #18-#19 · column added: a"
    )
    assert line("initial", RowCounts(7), 1, 1, "") == "initial +7 · #1"
    assert line("rebuild", RowCounts(7), 1, 3, "--full-refresh") == (
        "rebuild +7 · #1-#3 · --full-refresh"
    )
    assert line("unchanged", RowCounts(), None, 18, "") == "unchanged · #18"


def test_the_response_has_the_names_of_the_files() -> None:
    response = MirrorResponse.of(BATCH)
    assert (response.first_file, response.last_file) == (
        "00000000000000000018.parquet",
        "00000000000000000019.parquet",
    )
    assert (response.files_written, response.bytes_written, response.rows_affected) == (2, 20, 154)
