"""`mirroring.json`: the definition of a mirrored database, in Fabric's REST API and in Git.

The rules come from "Mirrored database definition" in the reference of the REST API, and from
Fabric's documentation, "Fabric mirroring public REST API" and "Delta change data feed in mirroring
for Fabric".
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA

_PATH = "mirroring.json"

SCHEMA_SETTING = "defaultSchema"
RETENTION = "retentionInDays"
CHANGE_DATA_FEED = "enableDeltaChangeDataFeed"

# the settings of a mirrored database's target, by their names in `mirroring.json`
Settings = Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Definition:
    """The definition of a mirrored database.

    Args:
        content: the content of `mirroring.json`; it may have settings unknown to this version
    """

    content: Mapping[str, Any]

    @classmethod
    def new(cls, settings: Settings) -> Definition:
        """Return the definition of a new database for open mirroring."""
        target = {SCHEMA_SETTING: DEFAULT_SCHEMA, "format": "Delta", **settings}
        return cls(
            {
                "properties": {
                    "source": {"type": "GenericMirror", "typeProperties": {}},
                    "target": {"type": "MountedRelationalDatabase", "typeProperties": target},
                }
            }
        )

    @classmethod
    def from_parts(cls, parts: Any) -> Definition:
        """Read the parts of a definition from an answer of the REST API.

        Raises:
            ValueError: if `mirroring.json` is missing, or is not as Fabric documents it
        """
        try:
            (payload,) = (part["payload"] for part in parts if part["path"] == _PATH)
            found = cls(json.loads(base64.b64decode(payload, validate=True)))
            if not isinstance(found._target, dict):
                raise TypeError(f"its target is {type(found._target).__name__}")
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{_PATH} is missing, or is not as Fabric documents it ({error!r})"
            ) from error
        return found

    @property
    def parts(self) -> list[dict[str, str]]:
        """The parts of the definition, for the REST API."""
        payload = base64.b64encode(self.text.encode()).decode()
        return [{"path": _PATH, "payload": payload, "payloadType": "InlineBase64"}]

    @property
    def text(self) -> str:
        """The text of `mirroring.json`, for Git."""
        return json.dumps(self.content, indent=2)

    def changes(self, settings: Settings) -> dict[str, tuple[Any, Any]]:
        """Return the settings that differ, by name: the present value and the new one."""
        return {
            name: (self._target.get(name), value)
            for name, value in settings.items()
            if self._target.get(name) != value
        }

    def changed(self, settings: Settings) -> Definition:
        """Return a copy with these settings. All others stay as they are."""
        content = copy.deepcopy(dict(self.content))
        content["properties"]["target"]["typeProperties"].update(settings)
        return Definition(content)

    @property
    def _target(self) -> Any:
        return self.content["properties"]["target"]["typeProperties"]
