"""`_metadata.json`: what the service is told about a table (specification, "Metadata file")."""

from __future__ import annotations

import json

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition


def metadata(definition: TableDefinition) -> bytes:
    """The content of `_metadata.json`, with the properties that the table needs and no other.

    Without `keyColumns` the service can only insert. The file is written all the same: a table
    folder without it has been seen to be ignored.
    """
    properties = {"keyColumns": list(definition.key_columns)} if definition.key_columns else {}
    return json.dumps(properties, ensure_ascii=False, indent=2).encode()
