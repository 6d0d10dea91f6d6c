"""A node of each kind, which has another row and a changed one in each step."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.functional.project import Project

KINDS = (
    *("append", "merge", "seed", "dbt snapshot", "Python model"),
    *("table", "keyless", "delete+insert"),
)


def named(kind: str) -> str:
    """A name for a node of a kind, in a project that has one of each."""
    return re.sub(r"\W", "_", kind).lower()


def write_node(
    project: Project, kind: str, step: int, name: str = "orders", **config: Any
) -> None:
    """Write the node of a step, which is 0 in the first run."""
    rows = f"select id, if(id = 0, 'v{step}', 'a') as name from range({2 + step})"
    if kind not in ("keyless", "append"):
        config["unique_key"] = "id"
    match kind:
        case "table" | "keyless":
            sql = rows if kind == "table" else rows.replace(f"v{step}", "a")
            project.model(sql, name, **config)
        case "seed":
            others = "".join(f"{number},a\n" for number in range(1, 2 + step))
            project.write(f"seeds/{name}.csv", f"id,name\n0,v{step}\n{others}")
            seeds = {"seeds": [{"name": name, "config": config}]}
            project.write(f"seeds/{name}.yml", json.dumps(seeds))
        case "dbt snapshot":
            sql = f"select 0 as id, 'v{step}' as name union all select 1, 'a'"
            project.model(sql, f"{name}_source", materialized="view")
            config |= {"strategy": "check", "check_cols": "all"}
            relation = f"ref('{name}_source')"
            snapshot = {"name": name, "relation": relation, "config": config}
            project.write(f"snapshots/{name}.yml", json.dumps({"snapshots": [snapshot]}))
        case "Python model":
            options = ", ".join(f"{key}={value!r}" for key, value in config.items())
            project.write(
                f"models/{name}.py",
                "def model(dbt, session):\n"
                f"    dbt.config(materialized='table', {options})\n"
                f'    return session.sql("{rows}")\n',
            )
        case _:
            first = step + (kind == "append" and step > 0)
            new = f"select id, 'v{step}' as name from range({first}, {2 + step})"
            config |= {"materialized": "incremental", "incremental_strategy": kind}
            project.model(new, name, **config)


def told(kind: str, step: int) -> str:
    """What the message of the step's run begins with."""
    if step == 0:
        return "initial +2"
    return "+1 ~0 -0" if kind in ("keyless", "append") else "+1 ~1 -0"
