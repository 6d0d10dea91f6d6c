"""`mirroring.json`: the definition of a mirrored database, in Fabric's REST API and in Git.

A definition may have settings that this version does not know. The rules come from "Mirrored
database definition" in the reference of the REST API, and from Fabric's documentation, "Fabric
mirroring public REST API" and "Delta change data feed in mirroring for Fabric".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA

_PATH = "mirroring.json"

SCHEMA_SETTING = "defaultSchema"
RETENTION = "retentionInDays"
CHANGE_DATA_FEED = "enableDeltaChangeDataFeed"

# the settings of a mirrored database's target, by their names in `mirroring.json`
Settings = Mapping[str, str | int | bool]

Definition = dict[str, Any]


def new_definition(settings: Settings) -> Definition:
    """Return the definition of a new database for open mirroring."""
    target = {SCHEMA_SETTING: DEFAULT_SCHEMA, "format": "Delta", **settings}
    return {
        "properties": {
            "source": {"type": "GenericMirror", "typeProperties": {}},
            "target": {"type": "MountedRelationalDatabase", "typeProperties": target},
        }
    }


def settings_of(definition: Definition) -> dict[str, Any]:
    """Return the settings of the target in a definition. Changing them changes the definition."""
    settings: dict[str, Any] = definition["properties"]["target"]["typeProperties"]
    return settings


def text_of(definition: Definition) -> str:
    return json.dumps(definition, indent=2)


def parts_of(definition: Definition) -> list[dict[str, str]]:
    """Return the parts of a definition, for the REST API."""
    payload = base64.b64encode(text_of(definition).encode()).decode()
    return [{"path": _PATH, "payload": payload, "payloadType": "InlineBase64"}]


def definition_of(parts: Any) -> Definition:
    """Read the parts of a definition from an answer of the REST API.

    Raises:
        ValueError: if `mirroring.json` is missing, or is not as Fabric documents it
    """
    try:
        (payload,) = (part["payload"] for part in parts if part["path"] == _PATH)
        found: Definition = json.loads(base64.b64decode(payload, validate=True))
        settings = settings_of(found)
        if not isinstance(settings, dict):
            raise TypeError(f"its target is {type(settings).__name__}")
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{_PATH} is missing, or is not as Fabric documents it ({error!r})"
        ) from error
    return found
