"""Each line of output that README and docs show is one that is printed."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
import yaml
from dbt.events.types import (
    LogFreshnessResult,
    LogModelResult,
    LogSnapshotResult,
    LogStartLine,
    LogTestResult,
)

from dbt.adapters.openmirroring.destination import sql_endpoint
from dbt.adapters.openmirroring.landing_zone.batch import (
    Batch,
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.records import Journal, PastBatch
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.repair import Restored
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.operations import status as status_operations
from dbt.adapters.openmirroring.operations.held import not_passed
from dbt.adapters.openmirroring.operations.project_tables import State, TableStatus
from dbt.adapters.openmirroring.operations.status import check, history, status_lines, table_record
from dbt.adapters.openmirroring.replicator import monitoring
from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport, TableSync
from dbt.adapters.openmirroring.spark.embedded import start
from dbt.adapters.openmirroring.text.codes import with_code
from tests.pages import ROOT, Block, blocks_of, source_texts
from tests.unit.replicator.item import Item, rows

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# beginnings of lines that other programs print, or a whole run: a test runs what the page says
ELSEWHERE = {
    "README.md": ("{'id': ",),  # the last but one test here
    "recipes.md": (  # functional/test_recipes.py
        *("| ", "sales.customers ", "sales.orders ", "Refreshing the semantic model: "),
        "Nothing was published since the refresh of ",
    ),
}

# what dbt itself says
DBT = ("Compilation Error", "Connection test: [OK connection ok]")

NUMBERS = re.compile(
    r"(?:(initial|rebuild) \+(\d+)|(unchanged)|\+(\d+) ~(\d+) -(\d+))(?: · #(\d+))?(?: · (.+))?"
)
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

# characters of a line in a terminal, which fit on a page of the site
WIDTH = 100

NOW = datetime.now(timezone.utc)
HOURS = timedelta(hours=31)
COLUMNS = (MirroredColumn("id", "int", "int"), MirroredColumn("status", "string", "string"))
DEFINITION = TableDefinition(COLUMNS, ("id",), "parquet")
ID = "202611232146495e1f4e07"
OWNER = Owner("shop", "model.shop.orders", "analytics")
BATCH = Batch(
    *(ID, ID, "changes", "", OWNER, DEFINITION, RowCounts(), "parquet"),
    *(1, 1, 1, 1000, 0),
)


def paragraphs(text: str) -> Iterator[list[str]]:
    """The lines of an example that are no commands. Indented lines may be one error."""
    lines = iter(text.splitlines())
    error: list[str] = []
    for line in lines:
        if line.startswith("  "):
            error.append(line.strip())
            continue
        if error:
            yield error
            error = []
        if line.startswith("$ "):
            # a command with an open quotation mark goes on
            while line.count('"') % 2 or line.count("'") % 2:
                line += next(lines)
        elif line not in ("", "..."):
            yield [line]
    if error:
        yield error


BLOCKS = [
    block
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "console" and list(paragraphs(block.text))
]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_what_an_example_shows_is_what_is_printed(block: Block) -> None:
    elsewhere = ELSEWHERE.get(block.page, ())
    for lines in paragraphs(block.text):
        whole = " ".join(lines)
        assert is_printed(whole, elsewhere) or all(
            is_printed(line, elsewhere) for line in lines
        ), whole


def is_printed(line: str, elsewhere: tuple[str, ...]) -> bool:
    return (
        line in DBT
        or line.startswith(elsewhere or ("\0",))
        or TIME.sub("TIME", line) in printed()
        or is_result(line)
        or is_of_a_table(line)
        or is_text_of_the_source(line)
    )


# Lines about a node


def is_result(line: str) -> bool:
    """Check whether dbt prints a line for a node or a test, except for the number of dots."""
    found = re.fullmatch(r"(\d+) of (\d+) (.+?)(?: \.+| +) \[(.+?)(?: in ([\d.]+)s)?\]", line)
    if not found:
        return False
    index, total, what, told, seconds = found.groups()
    event = event_of(what, told)
    if not event:
        return False
    event.index, event.total, event.num_models = int(index), int(total), int(total)
    event.execution_time = float(seconds or 0)
    return plain(event_message(event)) == plain(line)


def event_of(what: str, told: str) -> Any:
    """The event of dbt for a result; None if it is no result."""
    kind, _, description = what.partition(" ")
    if kind == "START":
        return SimpleNamespace(of=LogStartLine, description=description)
    if what.startswith("OK created ") and is_message(told):
        text = what.removeprefix("OK created ")
        return SimpleNamespace(of=LogModelResult, description=text, status=told)
    if what.startswith("OK snapshotted ") and is_message(told):
        text = what.removeprefix("OK snapshotted ")
        values = {"description": text, "status": "success", "result_message": told, "cfg": {}}
        return SimpleNamespace(of=LogSnapshotResult, **values)
    if found := re.fullmatch(r"(PASS|WARN) freshness of (\w+)\.(\w+)", what):
        names = {"source_name": found[2], "table_name": found[3]}
        return SimpleNamespace(of=LogFreshnessResult, status=found[1].lower(), **names)
    if found := re.fullmatch(r"(PASS|FAIL)(?: (\d+))? (\w+)", what):
        result = {"status": found[1].lower(), "num_failures": int(found[2] or 0)}
        return SimpleNamespace(of=LogTestResult, name=found[3], **result)
    return None


def event_message(event: Any) -> str:
    return str(event.of.message(event))


def plain(line: str) -> str:
    """A line without colours, and with one blank in place of dots and blanks."""
    return re.sub(r"[ .]*[ ]+", " ", without_colours(line))


def without_colours(line: str) -> str:
    return re.sub(r"\x1b\[\d*m", "", line)


def is_message(told: str) -> bool:
    """Check whether a node has such a response."""
    gated = NodeConfig.parse({"materialized": "table", "publish": "after_tests"})
    if told == str(MirrorResponse.held(gated.held_until)):
        return True
    found = NUMBERS.fullmatch(told.removeprefix("would publish "))
    if not found:
        return False
    full, loaded, nothing, *changes, last, reason = found.groups()
    publication = full or nothing or "changes"
    counts = RowCounts(int(loaded)) if full else RowCounts(*(int(n or 0) for n in changes))
    plan = Plan(publication, reason or "", DEFINITION, counts)
    if told.startswith("would publish "):
        return told == str(MirrorResponse.preview(plan))
    published = batch(counts, int(last or 1), 0, publication, reason=reason or "")
    return bool(last) and told == str(MirrorResponse.of(published))


def is_of_a_table(line: str) -> bool:
    """Check whether a line is one of a table: published or held by tests, repaired, restored."""
    table, _, told = line.partition(": ")
    if found := re.fullmatch(r"restored ([\d,]+) rows of batch (\w+)", told):
        restored = batch(RowCounts(), 1, int(found[1].replace(",", "")), id=found[2])
        return told == str(Restored(restored))
    if found := re.fullmatch(r"held because (\w+) failed", told):
        return told == f"held {because(found[1])}"
    return "." in table and is_message(told)


def because(test: str) -> str:
    """Why a table is held whose test failed."""
    parents = {"depends_on": {"nodes": ["model.shop.orders"]}}
    graph = {"test.shop.t": {"resource_type": "test", "name": test, **parents}}
    return not_passed("model.shop.orders", graph, {"test.shop.t": "fail"})


# Messages


@cache
def texts() -> list[tuple[int, re.Pattern[str], str]]:
    """The texts of the source: how many letters of their own they have, as patterns, the code."""
    found = {(text, code) for text, code in source_texts() if "\n" not in text}
    parts = [(text.strip().split("..."), code) for text, code in found]
    return [
        (len("".join(each)), re.compile(".+".join(map(re.escape, each))), code)
        for each, code in parts
    ]


def is_text_of_the_source(line: str) -> bool:
    """Check whether a message is mostly a text of the source, and has the code of it."""
    told = re.sub(r"^model\.\S+ \(\S+\): ", "", line)
    own = told.partition(" [OM")[0]
    return any(
        letters > 12
        and letters > len(own) * 0.3
        and pattern.fullmatch(own)
        and told == with_code(own, code)
        for letters, pattern, code in texts()
    )


# Tables


@cache
def printed() -> set[str]:
    """Lines that are printed for the tables of the examples."""
    found = (
        *statuses(),
        *history_of_a_table(),
        *problems(),
        *behind(),
        *replicated(),
        *refreshed(),
        *asked_by_init(),
        *java(),
        *files(),
        *flights(),
    )
    return {TIME.sub("TIME", without_colours(line).strip()) for line in found}


def batch(
    counts: RowCounts, last: int, table_rows: int, publication: str = "changes", **more: Any
) -> Batch:
    """A batch of one file, or of none if nothing has changed."""
    more |= {"rows": counts, "table_rows": table_rows, "publication": publication}
    more |= {"first_file": last, "last_file": last}
    if publication == "unchanged":
        more |= {"first_file": None, "files_written": 0, "bytes_written": 0}
    return replace(BATCH, **more)


def status(
    table: str,
    state: State,
    last: Batch | None = None,
    pending: Batch | None = None,
    note: str = "",
    at: datetime | None = None,
) -> TableStatus:
    schema, _, name = table.partition(".")
    landed: Any = SimpleNamespace(
        folder=TableFolder(schema, name),
        journal=Journal.of(last, at or NOW) if last else None,
        pending=SimpleNamespace(batch=pending) if pending else None,
        files=None,
    )
    applied = TableReport("Replicating", last_sync=NOW, visible=NOW if not pending else None)
    report = ServiceReport(tables={table: applied} if last else {})
    return TableStatus(table, state, landed, note, report=report)


def tables(*statuses: TableStatus) -> Any:
    return SimpleNamespace(statuses=lambda *_: statuses)


INITIAL, CHANGES = RowCounts(1000), RowCounts(2, 1, 4)


def statuses() -> Iterator[str]:
    """Of four tables, and of one after a kill."""
    gone = batch(RowCounts(40), 1, 40, "initial")
    first = batch(INITIAL, 1, 1000, "initial")
    changed = batch(CHANGES, 2, 998)
    # this one is not shown: its run was killed
    killed = batch(RowCounts(98, 20, 3), 1, 998)
    customers = status("analytics.customers", "unfinished", killed, changed)
    of_four = (
        status("analytics.old_orders", "orphan", gone, note="model.shop.old_orders is gone"),
        customers,
        status("analytics.orders", "published", changed),
        status("analytics.returns", "not published"),
    )
    after_a_kill = status("analytics.orders", "unfinished", first, changed)
    for each in (of_four, (after_a_kill,)):
        yield from status_lines(tables(*each), ServiceReport(), WIDTH)


def history_of_a_table() -> Sequence[str]:
    """The first batch of the table is not shown."""
    first = replace(OWNER, invocation_id="edf16dd5-c280-4a62-bf81-83484c048bab")
    second = replace(OWNER, invocation_id="06de180f-8617-44c1-9f1f-285ae054cc7c")
    before = (
        batch(CHANGES, 2, 998, bytes_written=1400, owner=first),
        batch(INITIAL, 1, 1000, "initial", bytes_written=4000),
    )
    more = {"bytes_written": 2500, "owner": second, "reason": "column dropped: amount"}
    rebuild = batch(RowCounts(998), 1, 998, "rebuild", **more)
    past = tuple(PastBatch.of(each, NOW.isoformat()) for each in before)
    orders: Any = SimpleNamespace(table="analytics.orders", journal=Journal.of(rebuild, NOW, past))
    with patch.object(status_operations, "terminal_width", lambda: WIDTH):
        return history(tables(orders), None, 20, as_json=False).lines


def problems() -> Sequence[str]:
    held = status("analytics.orders", "held", note=because("not_null_orders_customer_id"))
    at = datetime.now(timezone.utc) - HOURS
    old = status("analytics.regions", "published", batch(CHANGES, 2, 998), at=at)
    hours = timedelta(hours=2), timedelta(hours=26)
    return check(tables(held, old), ServiceReport("Running"), "", "zone", *hours, False).failed


def behind() -> Iterator[str]:
    """The names of tables that are behind, from the JSON of the status."""
    for name in ("customers", "payments"):
        late = status(f"analytics.{name}", "published", batch(CHANGES, 2, 998))
        applied = {late.table: TableReport("Replicating", last_sync=NOW - HOURS)}
        record = table_record(replace(late, report=ServiceReport("Running", tables=applied)))
        if record["behind"]:
            yield record["table"]


def replicated() -> Iterator[str]:
    """The tables of README, and those of the page of the replicator."""
    orders = monitoring.TableReport("analytics", "orders", "Replicating", 1, 3, rows=3)
    second = "00000000000000000002.parquet"
    empty = TableError(
        "InputValidationError",
        f"{second} cannot be read: it has zero bytes. The files after it wait until a valid file "
        "of the same name is in its place.",
    )
    yield from monitoring.lines([orders])
    customers = monitoring.TableReport("analytics", "customers", "Failed", rows=5, error=empty)
    regions = monitoring.TableReport(
        "analytics", "regions", "Replicating", rows=4, waits_for=second
    )
    yield from monitoring.lines([customers, orders, regions])


def refreshed() -> list[str]:
    told: list[str] = []
    published = dict.fromkeys(("analytics.orders", "analytics.returns"), NOW)
    syncs = [TableSync(table, "Success", visible=NOW) for table in published]
    database: Any = SimpleNamespace(refresh_sql_endpoint=lambda: syncs)
    service: Any = SimpleNamespace(report=lambda: None)
    storage: Any = SimpleNamespace(write=lambda *_: None)
    with patch.object(sql_endpoint, "note", told.append):
        sql_endpoint.refresh_sql_endpoint(database, service, storage, published)
    return told


def asked_by_init() -> Iterator[str]:
    """The questions of `dbt init`, as dbt puts them from the template of a profile."""
    template = ROOT / "dbt" / "include" / "openmirroring" / "profile_template.yml"
    for name, prompt in yaml.safe_load(template.read_text())["prompts"].items():
        yield f"{name} ({prompt['hint']}) [{prompt['default']}]:"


def java() -> list[str]:
    """What `dbt debug` says of the embedded Spark."""
    told: list[str] = []
    home = "/usr/lib/jvm/java-17-openjdk-amd64"
    lease = SimpleNamespace(jvm=1, since=None, differing=())
    started: Any = SimpleNamespace(setup=SimpleNamespace(home="."), java_home=home, lease=lease)
    described: Any = SimpleNamespace(described=lambda: start.EmbeddedSpark.described(started))
    process = start.ProcessSpark()
    process._spark = described
    with patch.object(start, "fire_event", lambda event: told.append(event.msg)):
        process.print_state()
    return told


def files() -> Iterator[str]:
    """The landing zone of a table after two publications."""
    orders = TableFolder("analytics", "orders")
    numbered = (orders.file(number, "parquet") for number in (1, 2))
    for path in (*numbered, orders.journal, orders.metadata):
        yield f"mirror.MirroredDatabase/Files/LandingZone/{path}"


def flights() -> Iterator[str]:
    """The last lines of the quickstart."""
    path = ROOT / "integration_tests" / "quickstart.py"
    spec = importlib.util.spec_from_file_location("quickstart", path)
    assert spec
    assert spec.loader
    quickstart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(quickstart)
    columns = SimpleNamespace(fields=range(17))
    table = SimpleNamespace(schema=lambda: columns, count=lambda: 167_124, version=lambda: 3)
    folder: Any = SimpleNamespace(glob=lambda _: [Path("flights", "flights", "_delta_log")])
    with patch.object(quickstart, "DeltaTable", lambda _: table):
        yield from quickstart.read(folder)


def test_the_command_of_the_readme_prints_the_mirrored_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [shown] = [b.text for b in blocks_of(PAGES[0]) if "DeltaTable(" in b.text]
    command, _, output = shown.removeprefix('$ python -c "').partition('"\n')
    folder = "analytics.schema/orders"
    schema = pa.schema([("id", pa.int32()), ("status", pa.string())])
    item = Item(tmp_path / "mirror.MirroredDatabase")
    item.metadata(folder, keyColumns=["id"])
    item.land(1, rows((1, "open"), (2, "open"), (3, "paid"), schema=schema), folder)
    changes = ((3, None, 2), (2, "paid", 1), (4, "open", 4))
    item.land(2, rows(*changes, schema=schema), folder)
    item.replicator.scan()
    monkeypatch.chdir(tmp_path)

    exec(command)

    # the order of the rows is that of Delta's files
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(output.splitlines())


def test_the_metadata_that_is_shown_is_what_is_written() -> None:
    [shown] = [
        block.text
        for page in PAGES
        for block in blocks_of(page)
        if block.title == "_metadata.json"
    ]

    assert json.loads(shown) == json.loads(DEFINITION.metadata)
