"""Probes of Fabric's REST API and of what Fabric reports of itself."""

from __future__ import annotations

import json
import sys

from dbt.adapters.openmirroring.service.authentication import NotebookCredential
from dbt.adapters.openmirroring.service.mirrored_database import FabricError, MirroredDatabase
from dbt.adapters.openmirroring.service.monitoring import monitoring_report
from tests.workspace.onelake import readable
from tests.workspace.place import Place, applied, rows
from tests.workspace.probe import Saw, Steps, Until, not_clear, probe, saw

# seconds in which the user pauses and resumes the capacity
_BY_HAND = 900.0

_TABLE_KEYS = {"sourceTableName", "sourceSchemaName", "status", "errorMessage", "metrics"}


@probe(
    33,
    group="service",
    asks="What is `sourceSchemaName` of a table without a schema folder, and how many tables "
    "has a page?",
    assumes="Empty or `dbo`; about a hundred.",
    source='REST API, "Get Tables Mirroring Status", which does not say it',
    rests_on="landing_zone/layout.py::mirrored_table",
    otherwise="Let `mirrored_table` know that name; pages of any size are read.",
)
def table_without_schema(place: Place) -> Steps:
    table = place.table("no_schema", schema="").declare()
    table.land(rows((1, "a")))
    is_applied = yield from applied(table, (1, "a"))
    named = [state.schema for state in place.states() if state.name == table.name]
    path = f"{place.path}/getTablesMirroringStatus"
    page = place.api.ask("POST", path, "The tables cannot be listed")
    tables = page.get("data")
    return saw(
        is_applied and named[:1] in ([""], ["dbo"]),
        schema=(named[0] or "none") if named else "not listed",
        tables_in_a_page=len(tables) if isinstance(tables, list) else 0,
        has_another_page=bool(page.get("continuationUri")),
    )


@probe(
    35,
    group="service",
    asks="What does Fabric answer while the capacity is paused, and which status follows?",
    assumes="404 `CapacityNotActive`, and `Paused` once it is resumed.",
    source='troubleshooting, "Changes to Fabric capacity"; the code was seen by a user',
    rests_on="service/mirrored_database.py::_WAYS_OUT",
    otherwise="Add the code to `_WAYS_OUT`, which goes before the status.",
    needs="pause",
    is_last=True,
)
def paused_capacity(place: Place) -> Steps:
    status = f"{place.path}/getMirroringStatus"
    told: list[FabricError] = []

    def is_paused() -> bool:
        try:
            place.api.ask("POST", status, "The status cannot be read")
        except FabricError as error:
            told.append(error)
        return bool(told)

    place.tell("Pause the capacity of the workspace now, in the Azure portal.")
    if not (yield Until(is_paused, _BY_HAND)):
        return not_clear(was_paused=False)
    place.tell("Resume the capacity now.")

    def is_back() -> bool:
        try:
            place.api.ask("POST", status, "The status cannot be read")
        except FabricError:
            return False
        return True

    if not (yield Until(is_back, _BY_HAND)):
        return not_clear(told[0].msg, resumed=False)
    after = place.api.ask("POST", status, "The status cannot be read").get("status")
    known = "The capacity of the workspace is paused" in told[0].msg
    is_as_assumed = known and after == "Paused"
    return saw(
        is_as_assumed, told[0].msg, status=told[0].status, code_known=known, then=str(after)
    )


@probe(
    36,
    group="service",
    asks="Does a refresh of the SQL analytics endpoint name tables with their schema?",
    assumes="With it or without it: both are understood.",
    source='REST API, "Refresh Sql Endpoint Metadata", whose example has a table alone',
    rests_on="destination/sql_endpoint.py::_entry_of",
    otherwise="Let `_entry_of` look for the spelling that Fabric uses.",
)
def names_of_the_sql_endpoint(place: Place) -> Steps:
    table = place.table("endpoint").declare()
    table.land(rows((1, "a")))
    yield from applied(table, (1, "a"))
    syncs = place.database.refresh_sql_endpoint()
    named = [sync.table for sync in syncs if sync.table.rpartition(".")[2] == table.name]
    if not named:
        return not_clear(tables=len(syncs))
    known = named[0] in (table.name, f"{table.schema}.{table.name}")
    return saw(known, tables=len(syncs), with_schema="." in named[0])


@probe(
    37,
    group="service",
    asks="Can this identity read `Files/Monitoring`, and are the fields those of Microsoft's SDK?",
    assumes="Yes, also with *Read and write* only.",
    source="no page says so; Microsoft's own SDK reads them",
    rests_on="service/monitoring.py::monitoring_report",
    otherwise="Let `monitoring_report` read the fields that are there.",
)
def monitoring_files(place: Place) -> Steps:
    table = place.table("monitored").declare()
    table.land(rows((1, "a")))
    yield from applied(table, (1, "a"))
    files = {
        name: readable(place, "Files/Monitoring", name)
        for name in ("replicator.json", "tables.json")
    }
    refused = [text for text in files.values() if isinstance(text, str)]
    if refused:
        return saw(False, *refused, readable=False)
    contents = {name: bytes(text) for name, text in files.items() if isinstance(text, bytes)}
    report = monitoring_report(contents.get)
    try:
        tables = json.loads(contents["tables.json"]).get("tables") or [{}]
        has_fields = set(tables[0]) >= _TABLE_KEYS
    except (ValueError, AttributeError):
        has_fields = False
    is_listed = bool(report and f"{table.schema}.{table.name}" in report.tables)
    return saw(is_listed, readable=True, fields_of_the_SDK=has_fields, understood=bool(report))


@probe(
    38,
    group="service",
    asks="Does the token of a notebook that a service principal runs cover mirrored databases?",
    assumes="No: dbt reads `Files/Monitoring` instead.",
    source='Fabric\'s documentation, "NotebookUtils credentials utilities"',
    rests_on="service/authentication.py::NotebookCredential",
    otherwise="Remove the sentence on service principals from the page of the notebook.",
    needs="notebook",
)
def token_of_a_notebook(place: Place) -> Saw:
    database = MirroredDatabase(place.workspace, place.id, NotebookCredential(), place.clock)
    try:
        status = database.report().status
    except FabricError as error:
        return saw(error.status in (401, 403), error.msg, status=error.status or 0)
    return saw(False, status=status)


@probe(
    39,
    group="service",
    asks="How long does it take until a new mirrored database can be started, and does it start "
    "without a file?",
    assumes="Some minutes, and yes.",
    source='best practices, "Choose a file-detection strategy": the first files come first',
    rests_on="service/mirrored_database.py::TIMEOUT",
    otherwise="Set `TIMEOUT` to twice the time.",
)
def creation_and_start(place: Place) -> Saw:
    refused = str(place.setup.get("not started", ""))
    facts = {name.replace(" ", "_"): round(s) for name, s in place.setup.items() if s != refused}
    return saw(not refused, refused, starts_without_a_file=not refused, **facts)


def is_in_notebook() -> bool:
    """Check whether this process is a notebook of Fabric."""
    return "notebookutils" in sys.modules
