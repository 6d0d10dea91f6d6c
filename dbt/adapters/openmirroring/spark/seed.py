"""The rows of a seed, as Spark SQL."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from dbt.adapters.openmirroring.text.sql import quoted

if TYPE_CHECKING:
    import agate

# when Spark's Thrift server closes a session, it can drop only views whose names need no quotes
SEED_VIEW = "openmirroring_seed"


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
