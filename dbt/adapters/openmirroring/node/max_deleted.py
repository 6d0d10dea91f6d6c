"""How many rows one publication may take away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.plan import Plan

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True)
class MaxDeleted:
    """A limit, as a number of rows or as a share of those that are published.

    Args:
        rows: None for a share
        percent: 0 to 100
    """

    rows: int | None = None
    percent: float = 0

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.rows is None else f"{self.rows:,}"

    @classmethod
    def parse(cls, value: Any) -> MaxDeleted | None:
        """Read a limit; None for none.

        Args:
            value: a number of rows (1000), or a share (10%)

        Raises:
            CompilationError: it is neither
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

    def finding(self, plan: Plan) -> str:
        """What a publication takes away beyond the limit; empty if it keeps to it."""
        published = plan.journal.batch.table_rows if plan.journal else 0
        deleted = taken_away(plan)
        allowed = self.rows if self.rows is not None else published * self.percent / 100
        if deleted <= allowed:
            return ""
        return f"{deleted:,} of {published:,} rows would be deleted, and `max_deleted` is {self}"


def taken_away(plan: Plan) -> int:
    """The rows by which a publication makes the mirrored table smaller, or that it deletes."""
    if not plan.journal:
        return 0
    if plan.starts_folder:
        return max(0, plan.journal.batch.table_rows - plan.row_count)
    return plan.rows.deleted
