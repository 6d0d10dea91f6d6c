"""Probes of tables: files are landed, and it is seen what Fabric makes of them."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
from azure.core.exceptions import HttpResponseError
from deltalake.exceptions import DeltaError
from pyarrow.lib import ArrowException

from dbt.adapters.openmirroring.landing_zone.batch import (
    DelimitedText,
    MirroredColumn,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.layout import PROCESSED_FOLDERS, file_name
from dbt.adapters.openmirroring.landing_zone.onelake.claim import CLAIM
from dbt.adapters.openmirroring.service.monitoring import REBUILD_TIMEOUT
from dbt.adapters.openmirroring.service.reports import TableReport, is_behind, utc_time
from tests.workspace.onelake import code_of
from tests.workspace.place import (
    APPLIED,
    MOVED,
    NEVER,
    SCHEMA,
    Place,
    applied,
    rows,
    seen,
    settled,
)
from tests.workspace.probe import Fact, Saw, Steps, Until, not_clear, probe, saw

# files of the probe whose second part is asked after eight days
_OLD = "old_files"


def _now() -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc)


@probe(
    1,
    group="landing",
    asks="Does Fabric keep decimal(38,18), date, tinyint, binary and timestamps in microseconds?",
    assumes="Yes: Delta has the same types.",
    source='landing zone, "Column types": simple Parquet types are supported',
    rests_on="types/columns.py::_landed_type",
    otherwise="Let `_landed_type` land the type that Fabric makes of it, so that model and mirror "
    "stay equal.",
)
def types_are_kept(place: Place) -> Steps:
    values: dict[str, tuple[pa.DataType, Any]] = {
        "decimal(38,18)": (pa.decimal128(38, 18), Decimal("1.5")),
        "date": (pa.date32(), dt.date(2026, 2, 28)),
        "byte": (pa.int8(), 7),
        "binary": (pa.binary(), b"\0"),
        "timestamp": (pa.timestamp("us", "UTC"), dt.datetime(2026, 2, 28, 1, 2, 3, 456789)),
    }
    tables = {name: place.table(f"type_{name.partition('(')[0]}").declare() for name in values}
    for name, (kind, value) in values.items():
        schema = pa.schema([("id", pa.int64()), ("value", kind)])
        tables[name].land(rows((1, value), schema=schema))
    yield from settled(*tables.values())
    kept = {name: table.columns().get("value", "none") for name, table in tables.items()}
    failed = [table.state.message for table in tables.values() if table.state]
    return saw(all(name == kind for name, kind in kept.items()), *failed, **kept)


@probe(
    2,
    group="landing",
    asks="Is a timestamp without a time zone kept in Delta, and does the SQL analytics endpoint "
    "take its table?",
    assumes="We do not know. dbt lands it as a timestamp in UTC, which is right either way.",
    source="no page says so",
    rests_on="types/columns.py::_landed_type",
    otherwise="If both are so, `_landed_type` can land `timestamp_ntz` as it is.",
)
def timestamps_without_zone(place: Place) -> Steps:
    table = place.table("type_ntz").declare()
    schema = pa.schema([("id", pa.int64()), ("value", pa.timestamp("us"))])
    table.land(rows((1, dt.datetime(2026, 2, 28)), schema=schema))
    yield from settled(table)
    kept = table.columns().get("value", "none")
    syncs = [s for s in place.database.refresh_sql_endpoint() if s.table.endswith(table.name)]
    endpoint = syncs[0] if syncs else None
    return saw(
        None,
        table.state.message if table.state else "",
        endpoint.error if endpoint else "",
        delta=kept,
        SQL_endpoint=endpoint.status if endpoint else "not listed",
    )


@probe(
    3,
    group="landing",
    asks="Is a first Parquet file without rows a table with its columns?",
    assumes="Yes.",
    source='best practices, "Plan for recovery": such a file needs no repair',
    rests_on="node/stage.py::stage",
    otherwise="Publish the metadata of an empty model alone, and its first rows as the load.",
)
def file_without_rows(place: Place) -> Steps:
    table = place.table("empty").declare()
    table.land(SCHEMA.empty_table())
    is_right = yield from applied(table)
    columns = list(table.columns()) == SCHEMA.names
    return seen(is_right and columns, table, columns=columns)


@probe(
    4,
    group="landing",
    asks="Does data that lands before `_metadata.json` wait, or is it inserted?",
    assumes="Either way the key works once the file is there. dbt writes it first.",
    source='landing zone, "Metadata file": it must be there, and it can be added anytime',
    rests_on="landing_zone/publisher.py::_publish_files",
    otherwise="Nothing to change: dbt writes the metadata before the first file.",
)
def data_before_metadata(place: Place) -> Steps:
    table = place.table("late_metadata")
    table.land(rows((1, "a"), (2, "b")))
    is_inserted = yield Until(lambda: bool(table.state and table.rows()), APPLIED)
    table.declare()
    table.land(rows((1, "A", 1), (2, None, 2)))
    has_key = yield from applied(table, (1, "A"))
    return seen(has_key, table, inserted_without=is_inserted)


@probe(
    5,
    group="landing",
    asks="Are `keyColumns` matched if their case differs from that of the file?",
    assumes="No.",
    source="no page says so",
    rests_on="landing_zone/batch.py::metadata",
    otherwise="Nothing to change: dbt spells the keys as the file does.",
)
def key_in_another_case(place: Place) -> Steps:
    table = place.table("key_case", keyColumns=["ID"]).declare()
    table.land(rows((1, "a"), (2, "b")))
    table.land(rows((1, "A", 1)))
    is_matched = yield from applied(table, (1, "A"), (2, "b"))
    return seen(not is_matched, table)


@probe(
    6,
    group="landing",
    asks="If a key is there twice, does an update, an upsert or a delete change one row or both?",
    assumes="We do not know. dbt publishes no key twice.",
    source="no page says so",
    rests_on="replicator/rows.py::net_changes",
    otherwise="Let the replicator do as Fabric does, so that it shows the same to a publisher "
    "with such keys.",
)
def keys_that_are_there_twice(place: Place) -> Steps:
    tables = [place.table(f"twice_{name}").declare() for name in ("update", "upsert", "delete")]
    for table, change in zip(tables, ((1, "A", 1), (1, "A", 4), (1, None, 2)), strict=True):
        table.land(rows((1, "a"), (1, "b"), (2, "c")))
        table.land(rows(change))
    yield from settled(*tables)
    return seen(None, *tables)


@probe(
    7,
    group="landing",
    asks="Are rows of a file without row markers inserted, after a file with them?",
    assumes="Yes, also if their key exists.",
    source='landing zone, "Initial load": a file without row markers is an insert',
    rests_on="landing_zone/plan.py::is_marked",
    otherwise="Let `is_marked` always be true after the first file with a marker.",
)
def unmarked_after_marked(place: Place) -> Steps:
    table = place.table("unmarked").declare()
    table.land(rows((1, "a")))
    table.land(rows((2, "b", 4)))
    table.land(rows((1, "again")))
    is_inserted = yield from applied(table, (1, "a"), (1, "again"), (2, "b"))
    return seen(is_inserted, table)


@probe(
    8,
    group="landing",
    asks="Is a delete applied that has NULL in all columns but the key?",
    assumes="Yes.",
    source='landing zone, "Incremental changes": a delete needs only the key columns',
    rests_on="landing_zone/plan.py::DELETE_MARKER",
    otherwise="Let the macro of deletes select the published values of the other columns.",
)
def deletes_with_keys_only(place: Place) -> Steps:
    table = place.table("deleted").declare()
    table.land(rows((1, "a"), (2, "b")))
    table.land(rows((1, None, 2)))
    is_deleted = yield from applied(table, (2, "b"))
    return seen(is_deleted, table)


@probe(
    9,
    group="landing",
    asks="Are Parquet files below `_scratchPad` ignored, also deeper down?",
    assumes="Yes.",
    source='best practices, "Publish files atomically"',
    rests_on="landing_zone/layout.py::SCRATCH_PAD",
    otherwise="Stage in the table folder, under names that begin with an underscore.",
)
def scratch_pad(place: Place) -> Steps:
    staged = place.table("staged", schema="")
    staged.path = f"_scratchPad/probes.staged/{staged.name}/rows"
    staged.land(rows((1, "a")))
    known = ("staged", "rows", "_scratchPad", "probes.staged")
    is_seen = yield Until(
        lambda: any(s.name in known or "_scratchPad" in s.schema for s in place.states()), APPLIED
    )
    return saw(not is_seen, table_seen=is_seen)


@probe(
    10,
    group="landing",
    asks="Are `_journal.json` and `_claim.*` still there after eight days?",
    assumes="Yes: names that begin with an underscore are ignored.",
    source='best practices, "Publish files atomically"',
    rests_on="landing_zone/records.py::Journal",
    otherwise="Keep the journal under a name and in a folder that Fabric leaves alone.",
    needs="week",
)
def records_of_a_week(place: Place) -> Saw:
    names = {entry.name for entry in place.storage.list(place.table(_OLD).path)}
    claims = place.azure_files().get_paths(place.full("_scratchPad"), recursive=True)
    has_claim = any(CLAIM in path.name for path in claims)
    return saw("_journal.json" in names and has_claim, journal="_journal.json" in names)


@probe(
    11,
    group="landing",
    asks="Which names of tables and columns are mirrored: with blanks, dots, letters like \u00fc, "
    "and two that differ in case?",
    assumes="Blanks and letters in tables, and anything in columns. dbt refuses dots and two "
    "names that differ in case.",
    source='troubleshooting, "Delta column mapping support"',
    rests_on="landing_zone/layout.py::TableFolder",
    otherwise="Let `TableFolder` refuse what is not mirrored, or allow what is.",
)
def names(place: Place) -> Steps:
    named = {
        "blank": place.table("a b"),
        "dot": place.table("a.b"),
        "letter": place.table("m\u00fcnze"),
        "capital": place.table("Twin"),
        "small": place.table("twin"),
        "columns": place.table("columns", keyColumns=["an id"]),
    }
    for name, table in named.items():
        schema = pa.schema([("an id", pa.int64()), ("a,b;{c}(d)=\u00fc", pa.string())])
        table.declare().land(rows((1, "a"), schema=schema if name == "columns" else SCHEMA))
    yield from settled(*named.values())
    mirrored: dict[str, Fact] = {n: table.rows() == [(1, "a")] for n, table in named.items()}
    said = [table.state.message for table in named.values() if table.state]
    is_as_assumed = all(mirrored[name] for name in ("blank", "letter", "columns"))
    return saw(is_as_assumed, *said, **mirrored)


@probe(
    12,
    group="landing",
    asks="Is a file ignored whose number was processed before?",
    assumes="Yes, and the table goes on. Our replicator stops it, to show the mistake.",
    source='best practices, "Choose a file-detection strategy": the next numeric index',
    rests_on="landing_zone/published_table.py::_require_files",
    otherwise="Nothing to change: dbt uses no number twice. Guarantees says what Fabric does.",
)
def number_that_was_used(place: Place) -> Steps:
    table = place.table("reused").declare()
    table.land(rows((1, "a")))
    table.land(rows((2, "b")))
    yield from applied(table, (1, "a"), (2, "b"))
    is_moved = yield Until(lambda: file_name(1, "parquet") not in table.files(), MOVED)
    if not is_moved:
        return not_clear(first_file_moved=False)
    table.land(rows((3, "c")), number=1)
    is_applied = yield Until(lambda: (3, "c") in (table.rows() or ()), NEVER)
    has_failed = bool(table.state and table.state.has_failed)
    return seen(not is_applied and not has_failed, table)


@probe(
    13,
    group="landing",
    asks="Does a missing number block the files after it, and what does the table show?",
    assumes="It blocks, until a file with that number is there.",
    source='best practices, "Choose a file-detection strategy"',
    rests_on="service/monitoring.py::not_applied",
    otherwise="Show in `mirror_status` what Fabric shows then.",
)
def missing_number(place: Place) -> Steps:
    table = place.table("gap").declare()
    table.land(rows((1, "a")))
    table.land(rows((3, "c")), number=3)
    yield from applied(table, (1, "a"))
    went_on = yield Until(lambda: (3, "c") in (table.rows() or ()), NEVER)
    state = table.state
    table.land(rows((2, "b")), number=2)
    is_healed = yield from applied(table, (1, "a"), (2, "b"), (3, "c"))
    told = state.message if state else ""
    shown = {"status": state.status, "error": state.code or "none"} if state else {}
    return saw(not went_on and is_healed, told, blocked=not went_on, healed=is_healed, **shown)


@probe(
    14,
    group="landing",
    asks="How long is a table listed after its folder was dropped?",
    assumes=f"Less than {REBUILD_TIMEOUT:g} seconds.",
    source='landing zone, "Drop table", which names no time',
    rests_on="service/monitoring.py::REBUILD_TIMEOUT",
    otherwise="Set `REBUILD_TIMEOUT` to twice the time.",
)
def dropped_folder(place: Place) -> Steps:
    table = place.table("dropped").declare()
    table.land(rows((1, "a")))
    yield from applied(table, (1, "a"))
    place.storage.delete(table.path)
    begun = time.monotonic()
    is_gone = yield Until(lambda: table.state is None, REBUILD_TIMEOUT)
    return saw(is_gone, seconds_until_gone=round(time.monotonic() - begun))


@probe(
    15,
    group="landing",
    asks="Is a table rebuilt if its folder is recreated at once?",
    assumes="Yes: Fabric knows the folder by its ETag.",
    source='landing zone, "Drop table"',
    rests_on="service/monitoring.py::wait_until_gone",
    otherwise="Nothing to change: dbt waits until the table is gone before it recreates the "
    "folder.",
)
def folder_recreated_at_once(place: Place) -> Steps:
    table = place.table("recreated").declare()
    table.land(rows((1, "a")))
    yield from applied(table, (1, "a"))
    place.storage.delete(table.path)
    table.landed = 0
    table.declare()
    schema = pa.schema([("id", pa.int64()), ("name", pa.float64())])
    table.land(rows((2, 0.5), schema=schema), number=1)
    is_rebuilt = yield from applied(table, (2, 0.5))
    return seen(is_rebuilt, table)


@probe(
    16,
    group="landing",
    asks="With which status and code is the deletion of a folder refused that Fabric reads?",
    assumes="409, which the adapter repeats; 423 and the codes of a lease too.",
    source='landing zone, "Drop table": it may fail, it says not how',
    rests_on="landing_zone/onelake/storage.py::_OneLakeRetry",
    otherwise="Let `_OneLakeRetry` repeat that status and code.",
)
def folder_in_use(place: Place) -> Steps:
    files = place.azure_files()
    wide = rows(*((number, "x" * 50) for number in range(50_000)))
    for attempt in range(3):
        table = place.table(f"in_use_{attempt}").declare()
        table.land(wide)
        yield Until(lambda table=table: table.state is not None, NEVER)  # type: ignore[misc]
        try:
            files.get_directory_client(place.full(table.path)).delete_directory()
        except HttpResponseError as error:
            code, status = code_of(error), error.status_code or 0
            is_repeated = status in (409, 423) or code.startswith("Lease")
            return saw(is_repeated, error.message, status=status, code=code)
    return not_clear(refused=False, attempts=3)


@probe(
    17,
    group="landing",
    asks="When are applied files moved, where to, and does the last one stay?",
    assumes="To one of two folders, at some time; the last one stays. After seven days they are "
    "gone.",
    source='landing zone, "Cleanup process" and "Format requirements"',
    rests_on="landing_zone/inventory.py::TableFiles",
    otherwise="Let `TableFiles` look in the folder that Fabric moves files to.",
)
def applied_files(place: Place) -> Steps:
    table = place.table(_OLD)
    if place.asked.again:
        left = {folder: len(table.files(folder)) for folder in PROCESSED_FOLDERS}
        here = table.files()
        is_as_assumed = not any(left.values()) and here == [file_name(3, "parquet")]
        return saw(is_as_assumed, files_in_table_folder=len(here), moved=sum(left.values()))
    table.declare()
    place.storage.write(f"{table.path}/_journal.json", b"{}")
    place.storage.write(f"_scratchPad/{CLAIM}probes.{_OLD}", b"")
    for number, letter in enumerate("abc", 1):
        table.land(rows((number, letter)))
    yield from applied(table, (1, "a"), (2, "b"), (3, "c"))
    begun = time.monotonic()
    is_moved = yield Until(lambda: len(table.files()) < 3, MOVED)
    seconds = round(time.monotonic() - begun)
    here, last = table.files(), file_name(3, "parquet")
    where = [folder for folder in PROCESSED_FOLDERS if table.files(folder)]
    if not is_moved:
        return not_clear(files_in_table_folder=len(here), seconds=seconds)
    stays = last in here
    facts: dict[str, Fact] = {"last_stays": stays, "moved_to": "".join(where[:1])}
    return saw(stays and bool(where), **facts, seconds_until_moved=seconds)


@probe(
    18,
    group="landing",
    asks="How are times of day, microseconds and booleans of delimited text read?",
    assumes="As their values, in the spelling that dbt writes.",
    source='landing zone, "Delimited text requirements", whose ITime shows a date',
    rests_on="landing_zone/batch.py::_DATA_TYPES",
    otherwise="Let `macros/sql/delimited.sql` write the spelling that Fabric reads.",
)
def delimited_text(place: Place) -> Steps:
    kinds = {"id": "bigint", "at": "time", "moment": "timestamp", "flag": "boolean"}
    columns = tuple(MirroredColumn(name, kind, kind) for name, kind in kinds.items())
    definition = TableDefinition(columns, ("id",), "csv", DelimitedText())
    table = place.table("delimited")
    place.storage.write(f"{table.path}/_metadata.json", definition.metadata)
    lines = ("1,14:30:00.123456,2026-02-28T01:02:03.123456Z,true",)
    head = ",".join(kinds)
    table.land("\r\n".join((head, *lines, "")).encode(), extension="csv")
    table.landed = 1
    yield from settled(table)
    types = table.columns()
    [(_, at, moment, flag)] = table.rows() or [(None, None, None, None)]
    micros = getattr(moment, "microsecond", -1) == 123456
    is_as_assumed = flag is True and micros and "14:30:00.123456" in str(at)
    facts: dict[str, Fact] = {"time": types.get("at", "none"), "time kept": "14:30" in str(at)}
    facts |= {"datetime": types.get("moment", "none"), "microseconds": micros}
    return saw(is_as_assumed, table.state.message if table.state else "", **facts)


@probe(
    19,
    group="landing",
    asks="After a stop and a start, is a table loaded only from the files that are left?",
    assumes="Yes: rows of files that were moved away are lost.",
    source='best practices, "Plan for recovery": everything restarts from the beginning',
    rests_on="service/monitoring.py::loss",
    otherwise="Say in the runbook that a stop loses nothing, and let `mirror_stop` ask for no "
    "confirmation.",
    is_last=True,
)
def stop_and_start(place: Place) -> Steps:
    table = place.table("stopped").declare()
    for number, letter in enumerate("abc", 1):
        table.land(rows((number, letter)))
    yield from applied(table, (1, "a"), (2, "b"), (3, "c"))
    is_moved = yield Until(lambda: len(table.files()) < 3, MOVED)
    place.database.stop()
    place.database.start()
    table.landed = 1
    yield from settled(table)
    if not is_moved:
        return not_clear(files_were_moved=False)
    return seen(len(table.rows() or ()) < 3, table)


@probe(
    24,
    group="landing",
    asks="Can deltalake read a mirrored table after updates and deletes, and columns with special "
    "characters?",
    assumes="Yes: it reads deletion vectors and column mapping.",
    source='best practices, "Keep merge keys narrow"; troubleshooting, "Delta column mapping '
    'support"',
    rests_on="destination/replica.py::onelake_replica",
    otherwise="Let Spark read the Delta table itself, as it does where it writes to OneLake.",
)
def delta_features(place: Place) -> Steps:
    table = place.table("features", keyColumns=["an id"]).declare()
    schema = pa.schema([("an id", pa.int64()), ("a;b", pa.string())])
    table.land(rows((1, "a"), (2, "b"), (3, "c"), schema=schema))
    table.land(rows((2, "B", 1), (3, None, 2), schema=schema))
    try:
        is_right = yield from applied(table, (1, "a"), (2, "B"))
    except (DeltaError, ArrowException, OSError) as error:
        return saw(False, str(error), readable=False)
    delta = table.delta()
    features = set(delta.protocol().reader_features or ()) if delta else set()
    has: dict[str, Fact] = {
        "deletion vectors": "deletionVectors" in features,
        "column mapping": "columnMapping" in features,
    }
    return seen(is_right, table, **has)


@probe(
    34,
    group="landing",
    asks="Is `lastSyncDateTime` at least the time of the publication once it is applied, and does "
    "it stay without new data?",
    assumes="Yes, and yes.",
    source='REST API, "Get Tables Mirroring Status", which does not say it',
    rests_on="service/reports.py::is_behind",
    otherwise="Let `is_behind` compare the processed rows of two reports, or take the time of a "
    "publication from the `Date` of OneLake's answer.",
)
def time_of_the_last_sync(place: Place) -> Steps:
    table = place.table("synced").declare()
    published = _now()
    table.land(rows((1, "a")))
    is_applied = yield from applied(table, (1, "a"))
    state = table.state
    synced = utc_time(state.synced) if state else None
    if not is_applied or not state or not synced:
        return not_clear(applied=is_applied, time_is_told=bool(synced))
    behind = is_behind(TableReport(state.status, "", synced), published)
    moved = yield Until(lambda: bool(table.state and table.state.synced != state.synced), NEVER)
    seconds = round((synced - published).total_seconds())
    return saw(not behind and not moved, seconds_after=seconds, moves_without_data=moved)
