"""The Spark sessions of dbt's connections: their statements, rows of seeds, and progress."""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
import uuid
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError
from pyspark import SparkContext
from pyspark.sql import DataFrame, Row, SparkSession

from dbt.adapters.openmirroring.spark.python_models import PythonModelError, create_view
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.crossing import received, selection

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("OpenMirroring")

# returns the finished and all tasks; None if no task runs, or if Spark does not report them
Tasks = Callable[[], "tuple[int, int] | None"]

# A publication needs these settings in every Spark, whatever the profile says. Spark reads them
# from the session, so they cannot be options of a statement.
SESSION_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark can store dates before 1582 in the Julian calendar, which other readers do not know
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # `describe` truncates the type of a struct after this many fields, by default 25
    "spark.sql.debug.maxToStringFields": "100000",
}

# when Spark's Thrift server closes a session, it can drop only views whose names need no quotes
SEED_VIEW = "openmirroring_seed"


def silence_pyspark() -> None:
    """Keep PySpark from printing between the lines of dbt.

    PySpark prints every error a second time, as JSON with the JVM stack trace. At every start it
    also warns that it does not fully support pandas 3.
    """
    logging.getLogger("SQLQueryContextLogger").disabled = True
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)


# a query, which may begin with comments
_QUERY = re.compile(
    r"(?:\s|\(|/\*.*?\*/|--[^\n]*\n)*(?:select|with|values|from|table)\b",
    re.IGNORECASE | re.DOTALL,
)


def is_query(sql: str) -> bool:
    """Check whether a statement is a query, which only returns rows."""
    return _QUERY.match(sql) is not None


class SessionHandle(SparkConnectionWrapper):
    """A handle that runs the statements of one node in a session of its own.

    So settings and temporary views do not leak between nodes. dbt-spark's handle gets a shared
    session from the builder for every statement, and applies all settings again.
    """

    def cursor(self) -> SessionHandle:
        return self

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        if bindings:
            raise NotImplementedError("A Spark session has no bindings")
        self.run(sql.strip().rstrip(";"))

    @abstractmethod
    def run(self, sql: str) -> None:
        """Run one statement."""

    @abstractmethod
    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows of the last statement."""

    @abstractmethod
    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """Return the first rows of the last statement."""

    @abstractmethod
    def create_view(self, name: str, code: str, node: str) -> None:
        """Run the code of a Python model, and register its result as a view of a quoted name.

        Raises:
            DbtRuntimeError: if the model raises an error, or returns no DataFrame
        """

    def follow(self) -> Tasks:
        """Follow the tasks of the statements that this thread runs from now on."""
        return lambda: None

    def run_to_end(self, sql: str) -> None:
        """Compute the rows of the last statement if it is a query, and discard them.

        A hook may run a query for its side effect, or for the error that it raises.
        """

    @property
    def is_driven_here(self) -> bool:
        """Whether Spark's driver runs on this machine and so reads the same files as dbt."""
        return False

    @property
    def is_local(self) -> bool:
        """Whether Spark runs only on this machine."""
        return False

    def rollback(self) -> None:
        """Do nothing, because Spark has no transactions."""


class PySparkHandle(SessionHandle):
    """A handle with a new PySpark session in this process, or on a Spark Connect server."""

    def __init__(self, session: SparkSession, settings: Mapping[str, str]) -> None:
        self.session = session
        for key, value in settings.items():
            self.session.conf.set(key, value)
        self._result: DataFrame | None = None
        self._tasks: RemoteTasks | None = None
        # A tag of the jobs of this thread, to cancel no others: PySpark 3.5 can interrupt a
        # session only through Spark Connect. The thread's next handles use the same one.
        self._tag = f"dbt-{threading.get_ident()}"
        if self.is_driven_here:
            self.session.sparkContext.addJobTag(self._tag)

    def run(self, sql: str) -> None:
        self._result = self.session.sql(sql)

    def create_view(self, name: str, code: str, node: str) -> None:
        try:
            create_view(name, code, self.session, node)
        except PythonModelError as error:
            raise DbtRuntimeError(str(error)) from error

    def run_to_end(self, sql: str) -> None:
        if self._result is not None and is_query(sql):
            self._result.write.format("noop").mode("overwrite").save()

    def follow(self) -> Tasks:
        if self.is_driven_here:
            return _tasks_of_thread(self.session.sparkContext)
        self._tasks = RemoteTasks()
        self.report_to(self)
        return self._tasks

    def report_to(self, other: PySparkHandle) -> None:
        """Let the progress that is followed by another handle include the tasks of this one."""
        if other._tasks:
            self.session.registerProgressHandler(other._tasks.told)  # type: ignore[arg-type]

    @property
    def is_driven_here(self) -> bool:
        # a Spark Connect session is of another class, and its driver may be anywhere
        return isinstance(self.session, SparkSession)

    @property
    def is_local(self) -> bool:
        if not self.is_driven_here:
            return False
        return str(self.session.conf.get("spark.master", "")).startswith("local")

    @property
    def description(self) -> Sequence[tuple[Any, ...]]:
        fields = self._result.schema.fields if self._result is not None else []
        return [(f.name, f.dataType.simpleString(), *[None] * 4, f.nullable) for f in fields]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._fetch(lambda frame: frame.collect())

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return self._fetch(lambda frame: frame.take(size))

    def _fetch(self, fetch: Callable[[DataFrame], list[Row]]) -> list[tuple[Any, ...]]:
        if self._result is None:
            return []
        types = [dtype for _, dtype, *_ in self.description]
        selected = selection(types)
        if not selected:
            return list(fetch(self._result))
        return received(types, fetch(self._result.toDF(*selected).selectExpr(*selected.values())))

    def cancel(self) -> None:
        if self.is_driven_here:
            self.session.sparkContext.cancelJobsWithTag(self._tag)
        else:
            self.session.interruptAll()

    def close(self) -> None:
        self._result = None
        if not self.is_driven_here:  # the server would keep the session for an hour
            self.session.stop()


def _tasks_of_thread(context: SparkContext) -> Tasks:
    """Follow the jobs of this thread by a job group.

    Each Python thread has a JVM thread of its own, so the group has only the jobs of this thread.
    """
    group = f"dbt-{uuid.uuid4()}"
    # `setJobGroup` would also replace the description of the jobs in Spark's pages
    context.setLocalProperty("spark.jobGroup.id", group)
    tracker = context.statusTracker()

    def tasks() -> tuple[int, int] | None:
        try:
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            running = [job for job in jobs if job and job.status == "RUNNING"]
            ids = {stage for job in running for stage in job.stageIds}
            stages = [stage for stage in map(tracker.getStageInfo, ids) if stage]
        except Exception as error:  # Spark may have been stopped, which the node reports
            logger.debug(f"Spark does not tell its tasks: {error}")
            return None
        return _sum((stage.numCompletedTasks, stage.numTasks) for stage in stages)

    return tasks


class RemoteTasks:
    """The tasks of the Spark Connect sessions of one node, which report them."""

    def __init__(self) -> None:
        self._latest: tuple[int, int] | None = None

    def __call__(self) -> tuple[int, int] | None:
        return self._latest

    def told(self, stages: Any, done: bool, **_: Any) -> None:
        counts = ((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())
        self._latest = None if done else _sum(counts)


def _sum(stages: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    counts = list(stages)
    total = sum(tasks for _, tasks in counts)
    return (sum(done for done, _ in counts), total) if total else None


def seed_view(name: str, seed: agate.Table) -> str:
    """Return a statement that creates a temporary view of strings from the rows of a seed.

    All rows are one literal, because Spark's parser would take minutes for thousands of literals.
    It is in Base64, because settings decide what a backslash or ${} means in a literal.
    """
    rows = [[None if value is None else _text(value) for value in row] for row in seed.rows]
    content = base64.b64encode(json.dumps(rows).encode()).decode()
    columns = ", ".join(
        f"row[{number}] as {quoted(column)}" for number, column in enumerate(seed.column_names)
    )
    return f"""\
create or replace temporary view {quoted(name)} as
select {columns} from (
  select explode(from_json(
    cast(unbase64('{content}') as string), 'array<array<string>>'
  )) as row
)"""


def _text(value: Any) -> str:
    return value.isoformat(sep=" ") if hasattr(value, "hour") else str(value)
