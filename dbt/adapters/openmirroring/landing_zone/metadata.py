"""`_metadata.json`: the table's properties for the service (specification, "Metadata file")."""

from __future__ import annotations

import json
from typing import Any

from dbt.adapters.openmirroring.landing_zone.batch import UPSERT, TableDefinition
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText, data_type


def metadata(definition: TableDefinition) -> bytes:
    """Return the content of `_metadata.json`, with only the properties that the table needs.

    Without `keyColumns` the service can only insert. The file is needed even without properties:
    the service has been seen to ignore a table folder without it.
    """
    properties: dict[str, Any] = {}
    if definition.key_columns:
        properties["keyColumns"] = list(definition.key_columns)
    if definition.is_by_time:
        properties["fileDetectionStrategy"] = "LastUpdateTimeFileDetection"
    if definition.default_row_marker == UPSERT:
        properties["isUpsertDefaultRowMarker"] = True
    if definition.delimited:
        properties |= _delimited(definition, definition.delimited)
    return json.dumps(properties, ensure_ascii=False, indent=2).encode()


def _delimited(definition: TableDefinition, text: DelimitedText) -> dict[str, Any]:
    """Return the properties of delimited text (specification, "Delimited text requirements").

    The row marker is not declared, because it is not a column of the table.
    """
    columns = [
        {
            "Name": column.name,
            "DataType": data_type(column.landed_type),
            "IsNullable": column.name not in definition.key_columns,
        }
        for column in definition.columns
    ]
    return {
        "SchemaDefinition": {"Columns": columns},
        "FileFormat": "CSV" if definition.landing_format == "csv" else "DelimitedText",
        "FileExtension": definition.landing_format,
        "FileFormatTypeProperties": text.properties,
    }
