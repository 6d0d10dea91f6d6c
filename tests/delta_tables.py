"""Delta tables are read without deltalake's `to_pyarrow_table`.

Its files are read by threads of pyarrow that call back into Python. A process that ends while one
of them still does so is aborted: "terminate called without an active exception"
(https://github.com/delta-io/delta-rs/issues/2184).
"""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable


def content(table: DeltaTable) -> pa.Table:
    return pa.table(table.scan())
