"""The limit of the rows that one publication may delete."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.plan import Plan

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True)
class MaxDeleted:
    """A limit, as a number of rows or as a percentage of the published rows.

    Args:
        rows: number of rows; None if the limit is a percentage
        percent: 0 to 100; ignored if `rows` is given
    """

    rows: int | None = None
    percent: float = 0

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.rows is None else f"{self.rows:,}"

    @classmethod
    def parse(cls, value: Any) -> MaxDeleted | None:
        """Read a limit. Return None if there is no limit.

        Args:
            value: a number of rows (1000) or a percentage (10%)

        Raises:
            CompilationError: if it is neither
        """
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return cls(rows=value)
        share = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
        if share and float(share[1]) <= 100:
            return cls(percent=float(share[1]))
        raise CompilationError(
            f"`max_deleted` is {value!r}. It must be a number of rows, e.g. 1000, or a share of "
            "the published rows, e.g. 10%."
        )

    def finding(self, plan: Plan) -> str | None:
        """Describe by how much a publication exceeds the limit; None if it does not."""
        published = plan.journal.batch.table_rows if plan.journal else 0
        deleted = taken_away(plan)
        allowed = self.rows if self.rows is not None else published * self.percent / 100
        if deleted <= allowed:
            return None
        return f"{deleted:,} of {published:,} rows would be deleted, and `max_deleted` is {self}"


def taken_away(plan: Plan) -> int:
    """Count the rows that a change set deletes, or by which a full load shrinks the table."""
    if not plan.journal:
        return 0
    if plan.starts_folder:
        return max(0, plan.journal.batch.table_rows - plan.row_count)
    return plan.rows.deleted
