"""Probes of the adapter: README's project, and what else a first day brings, with dbt itself.

They follow one another in one project, while the other probes wait for Fabric.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.spark.embedded.jvm import stop_spark
from dbt.adapters.openmirroring.spark.embedded.start import FOLDER
from tests.pages import ROOT, blocks_of
from tests.workspace.place import Place, Row, Table
from tests.workspace.probe import Fact, Saw, Steps, Until, probe, saw

# seconds that a command of dbt may take, and that it waits for Fabric at its end
_COMMAND, _MIRROR = 2400.0, 900

_KILLED = ROOT / "tests" / "functional" / "processes" / "killed_dbt.py"

_ORDERS = TableFolder("analytics", "orders")

_VALUES = """{{{{ config(materialized='table', unique_key='id') }}}}
select * from values {} as t({})
"""

_LARGE = """{{ config(materialized='table', unique_key='id') }}
select id, concat('row ', id) as name, {{ var('round') }} as round from range({{ var('rows') }})
"""

_ROUNDS = 3


@dataclass
class Done:
    """A command of dbt that has ended.

    Args:
        response: `adapter_response` of the only node
        message: of that node
    """

    status: int
    output: str
    response: dict[str, Any]
    message: str

    @property
    def facts(self) -> dict[str, Fact]:
        """What was published."""
        names = ("publication", "rows_inserted", "rows_updated", "rows_deleted")
        found = {name.replace("_", " "): self.response.get(name) for name in names}
        return {name: fact for name, fact in found.items() if fact is not None}

    @property
    def problem(self) -> str:
        """The message of a command that failed."""
        return "" if self.status == 0 else self.message or self.output[-300:]


class Shop:
    """README's project, which publishes to the mirrored database of the run."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.path = place.folder / "shop"
        self.table: Table = place.table(_ORDERS.identifier, schema=_ORDERS.schema)

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    def create(self) -> list[str]:
        """Write README's project. Return its models, in the order of its runs."""
        models = []
        for block in blocks_of(ROOT / "README.md", "Start"):
            match block.title:
                case "profiles.yml":
                    self._write_profile(yaml.safe_load(block.text))
                case "models/orders.sql":
                    models.append(block.text)
                case "":
                    pass
                case name:
                    self.write(name, block.text)
        return models

    def _write_profile(self, profile: dict[str, Any]) -> None:
        [target] = profile["shop"]["outputs"].values()
        del target["replicate"]
        identity = self.place.asked.identity
        settings = {name: getattr(identity, name) for name in (*identity.given, "authentication")}
        target |= {"landing_zone": self.place.landing_zone, **settings}
        target |= {"wait_for_mirror": _MIRROR, "refresh_sql_endpoint": True}
        self.write("profiles.yml", yaml.safe_dump(profile))

    def orders(self, *rows: str, columns: str = "id, status") -> None:
        """Let the model have other rows."""
        self.write("models/orders.sql", _VALUES.format(", ".join(rows), columns))

    def dbt(self, command: str, point: str = "") -> Generator[Until, bool, Done]:
        """Run dbt in a process of its own.

        Args:
            point: of the publication, at which it is killed; empty if it is not
        """
        python = Path(sys.executable)
        program = [str(python), str(_KILLED), point] if point else [str(python.with_name("dbt"))]
        folders = ["--project-dir", ".", "--profiles-dir", "."]
        log = self.path / "output.txt"
        (self.path / "target" / "run_results.json").unlink(missing_ok=True)
        with log.open("w") as output:
            process = subprocess.Popen(
                [*program, *shlex.split(command), *folders],
                cwd=self.path,
                env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
                stdout=output,
                stderr=output,
                # Ctrl-C is for the run, which ends it
                start_new_session=True,
            )
        how = f"kill {process.pid}"
        end = self.place.undo(f"process {process.pid} of dbt", how, lambda: _kill(process))
        # Spark is no stand-in, and needs its time
        longest = _COMMAND / self.place.asked.patience
        yield Until(lambda: process.poll() is not None, longest)
        end()
        with self.place.log.open("a") as kept:
            kept.write(f"$ dbt {command}\n{log.read_text()}\n")
        return self._done(process.wait(), log.read_text())

    def _done(self, status: int, output: str) -> Done:
        response, message = {}, ""
        with suppress(FileNotFoundError):
            results = json.loads((self.path / "target" / "run_results.json").read_text())
            for result in results["results"]:
                response, message = result["adapter_response"], result["message"] or ""
        return Done(status, output, response, message)

    def status(self, table: str) -> Generator[Until, bool, dict[str, Any]]:
        """Return what `mirror_status` says of a table; empty if it says nothing."""
        done = yield from self.dbt("--quiet run-operation mirror_status --args '{format: json}'")
        with suppress(ValueError, LookupError):
            [printed] = [line for line in done.output.splitlines() if line.startswith("{")]
            tables = json.loads(printed)["tables"]
            return next((dict(each) for each in tables if each["table"] == table), {})
        return {}

    def outcome(self, done: Done, publication: str, *rows: Row) -> Saw:
        """Return whether a command has published what it should, and Fabric has the rows."""
        mirrored = self.table.rows()
        is_equal = mirrored == sorted(rows, key=str)
        kind = done.response.get("publication")
        is_right = done.status == 0 and kind == publication and is_equal
        return saw(is_right, done.problem, equal=is_equal, **_keywords(done.facts))


def _keywords(facts: dict[str, Fact]) -> dict[str, Fact]:
    return {name.replace(" ", "_"): fact for name, fact in facts.items()}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process of dbt with its own children; it is right if it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _seconds(status: dict[str, Any], earlier: str, later: str) -> float | None:
    if not status.get(earlier) or not status.get(later):
        return None
    times = (datetime.fromisoformat(str(status[name])) for name in (earlier, later))
    begun, ended = times
    return round((ended - begun).total_seconds(), 1)


@probe(
    40,
    group="product",
    asks="Does README's project publish its first load, and does Fabric apply it?",
    assumes="Yes: three rows.",
    source="README, Start",
    rests_on="node/publish.py::publish",
    otherwise="Mend what the message names; nothing else counts before that.",
    lane="dbt",
)
def first_load(place: Place) -> Steps:
    shop = Shop(place)
    first, _ = shop.create()
    home = shop.path / FOLDER
    place.undo(
        "the Spark of the project",
        f"dbt run-operation mirror_stop_spark in {shop.path}",
        lambda: stop_spark(home),
    )
    shop.write("models/orders.sql", first)
    created = yield from shop.dbt("run-operation mirror_create_database")
    done = yield from shop.dbt("run")
    rows = ((1, "open"), (2, "open"), (3, "paid"))
    seen = shop.outcome(done, "initial", *rows)
    is_known = "already exists with this definition" in created.output
    return Saw(seen.answer, {**seen.facts, "database known": is_known}, seen.said)


@probe(
    41,
    group="product",
    asks="Are a new, a changed and a deleted row a change set that Fabric applies?",
    assumes="Yes: +1 ~1 -1.",
    source="README, Start",
    rests_on="node/compare.py::Comparer",
    otherwise="See which row is wrong with `mirror_equals_model`, and the probes of row markers.",
    lane="dbt",
    after=40,
)
def change_set(place: Place) -> Steps:
    shop = Shop(place)
    _, second = shop.create()
    shop.write("models/orders.sql", second)
    done = yield from shop.dbt("run")
    return shop.outcome(done, "changes", (1, "open"), (2, "paid"), (4, "open"))


@probe(
    42,
    group="product",
    asks="Does a new column come with a change set?",
    assumes="Yes: only rows with a value in it are updates.",
    source='landing zone, "Add column"',
    rests_on="macros/mapping/changes.sql::openmirroring__mirror_on_columns_added",
    otherwise="Let `openmirroring__mirror_on_columns_added` return `rebuild`.",
    lane="dbt",
    after=41,
)
def added_column(place: Place) -> Steps:
    shop = Shop(place)
    columns = "id, status, country"
    shop.orders("(1, 'open', 'DE')", "(2, 'paid', null)", "(4, 'open', null)", columns=columns)
    done = yield from shop.dbt("run")
    rows = ((1, "open", "DE"), (2, "paid", None), (4, "open", None))
    return shop.outcome(done, "changes", *rows)


@probe(
    43,
    group="product",
    asks="Is a table rebuilt that loses a column, and how long does it take?",
    assumes="Yes, within half an hour.",
    source='best practices, "Coordinate source schema changes"',
    rests_on="service/monitoring.py::wait_until_back",
    otherwise="Set `REBUILD_TIMEOUT` to what Fabric needs.",
    lane="dbt",
    after=42,
)
def dropped_column(place: Place) -> Steps:
    shop = Shop(place)
    shop.orders("(1, 'open')", "(2, 'paid')", "(4, 'open')")
    done = yield from shop.dbt("run")
    return shop.outcome(done, "rebuild", (1, "open"), (2, "paid"), (4, "open"))


@probe(
    44,
    group="product",
    asks="Does a run that is killed after its commit leave its batch, and publish nothing?",
    assumes="Yes.",
    source="docs/contributing/guarantees.md",
    rests_on="landing_zone/publisher.py::commit",
    otherwise="See in the landing zone what the kill has left, and mend the step.",
    lane="dbt",
    after=43,
)
def killed_run(place: Place) -> Steps:
    shop = Shop(place)
    shop.orders("(1, 'paid')", "(4, 'open')", "(5, 'open')")
    before = len(shop.table.files())
    done = yield from shop.dbt("run", point="after the manifest in OneLake")
    is_committed = place.storage.read(_ORDERS.manifest) is not None
    is_killed = done.status == -signal.SIGKILL
    published = len(shop.table.files()) - before
    is_right = is_killed and is_committed and published == 0
    said = "" if is_killed else done.problem
    return saw(is_right, said, killed=is_killed, committed=is_committed, published=published)


@probe(
    45,
    group="product",
    asks="Does the next run bring the batch to its end, without a duplicate?",
    assumes="Yes; it waits for the killed run for four and a half minutes at most.",
    source="docs/contributing/guarantees.md",
    rests_on="landing_zone/onelake/claim.py::EXPIRY",
    otherwise="See what `mirror_recover` says, and mend the step.",
    lane="dbt",
    after=44,
)
def recovery(place: Place) -> Steps:
    shop = Shop(place)
    done = yield from shop.dbt("run")
    return shop.outcome(done, "unchanged", (1, "paid"), (4, "open"), (5, "open"))


@probe(
    46,
    group="product",
    asks="Does `mirror_equals_model` read the mirrored table, and find it equal?",
    assumes="Yes.",
    source="docs/tests.md",
    rests_on="destination/replica.py::onelake_replica",
    otherwise="See the probe of Delta's features.",
    lane="dbt",
    after=40,
)
def equal_model(place: Place) -> Steps:
    shop = Shop(place)
    tests = [{"mirror_equals_model": {"arguments": {"timeout": 600}}}]
    shop.write(
        "models/orders.yml", yaml.safe_dump({"models": [{"name": "orders", "data_tests": tests}]})
    )
    done = yield from shop.dbt("test")
    return saw(done.status == 0, done.problem, passed=done.status == 0)


@probe(
    47,
    group="product",
    asks="Does `mirror_check` find nothing wrong, once all is applied?",
    assumes="Yes.",
    source="docs/operations.md",
    rests_on="operations/status.py::check",
    otherwise="See which problem it names, and whether Fabric's page shows it.",
    lane="dbt",
    after=40,
)
def check(place: Place) -> Steps:
    shop = Shop(place)
    done = yield from shop.dbt("run-operation mirror_check")
    return saw(done.status == 0, done.problem, passed=done.status == 0)


@probe(
    48,
    group="product",
    asks="Does the SQL analytics endpoint have the rows after `refresh_sql_endpoint`?",
    assumes="Yes.",
    source='REST API, "Refresh Sql Endpoint Metadata"',
    rests_on="destination/sql_endpoint.py::refresh_sql_endpoint",
    otherwise="Say on the page of Fabric how long reports are late.",
    lane="dbt",
    after=40,
)
def sql_endpoint(place: Place) -> Steps:
    shop = Shop(place)
    status = yield from shop.status(str(_ORDERS))
    seconds = _seconds(status, "published_at", "visible_at")
    return saw(seconds is not None and seconds >= 0, listed=bool(status), seconds=seconds)


@probe(
    49,
    group="product",
    asks="How long does it take until a publication of a million rows is applied, and visible?",
    assumes="Minutes.",
    source="no page says so",
    rests_on="destination/destination.py::_wait_for_mirror",
    otherwise="Say on the page of costs what was measured.",
    lane="dbt",
    after=40,
)
def large_publications(place: Place) -> Steps:
    shop = Shop(place)
    shop.write("models/large.sql", _LARGE)
    facts: dict[str, Fact | None] = {"rows": place.asked.rows}
    problems = []
    for round_ in range(1, _ROUNDS + 1):
        variables = f"{{round: {round_}, rows: {place.asked.rows}}}"
        done = yield from shop.dbt(f"run --select large --vars '{variables}'")
        problems.append(done.problem)
        if done.status:
            break
        status = yield from shop.status("analytics.large")
        facts[f"seconds_until_applied_{round_}"] = _seconds(status, "published_at", "applied_at")
        facts[f"seconds_until_visible_{round_}"] = _seconds(status, "published_at", "visible_at")
    return saw(None if not any(problems) else False, *problems, **facts)
