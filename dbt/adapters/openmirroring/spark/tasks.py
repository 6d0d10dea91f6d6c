"""The progress of Spark's tasks for the statements of a session."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark import SparkContext
from pyspark.sql import SparkSession

logger = AdapterLogger("OpenMirroring")

# returns the finished and all tasks; None if no task runs, or if Spark does not report them
Tasks = Callable[[], "tuple[int, int] | None"]


def follow_tasks(session: Any) -> Tasks:
    """Follow the tasks of the statements that this thread runs in a session from now on.

    Args:
        session: a session in this process, or of Spark Connect
    """
    if isinstance(session, SparkSession):
        return _of_thread(session.sparkContext)
    tasks = RemoteTasks()
    tasks.watch(session)
    return tasks


def _of_thread(context: SparkContext) -> Tasks:
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
    """The tasks of the Spark Connect sessions of one node."""

    def __init__(self) -> None:
        self._latest: tuple[int, int] | None = None

    def __call__(self) -> tuple[int, int] | None:
        return self._latest

    def watch(self, session: Any) -> None:
        """Follow all tasks of a session."""
        if hasattr(session, "registerProgressHandler"):  # since PySpark 4.0
            session.registerProgressHandler(self._told)

    def _told(self, stages: Any, done: bool, **_: Any) -> None:
        counts = ((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())
        self._latest = None if done else _sum(counts)


def _sum(stages: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    counts = list(stages)
    total = sum(tasks for _, tasks in counts)
    return (sum(done for done, _ in counts), total) if total else None
