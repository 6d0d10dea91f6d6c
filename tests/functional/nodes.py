"""A node `orders` of each kind, which has another row and a changed one in each step."""

from __future__ import annotations

import json
from typing import Any

from tests.functional.project import Project

STRATEGIES = ("append", "merge", "delete+insert")
KINDS = ("table", "keyless", *STRATEGIES, "seed", "dbt snapshot", "Python model")


def write_node(project: Project, kind: str, step: int, **config: Any) -> None:
    """Write the node of a step, which is 0 in the first run."""
    rows = f"select id, if(id = 0, 'v{step}', 'a') as name from range({2 + step})"
    if kind not in ("keyless", "append"):
        config["unique_key"] = "id"
    match kind:
        case "table" | "keyless":
            project.model(rows if kind == "table" else rows.replace(f"v{step}", "a"), **config)
        case "seed":
            others = "".join(f"{number},a\n" for number in range(1, 2 + step))
            project.write("seeds/orders.csv", f"id,name\n0,v{step}\n{others}")
            seeds = {"seeds": [{"name": "orders", "config": config}]}
            project.write("seeds/orders.yml", json.dumps(seeds))
        case "dbt snapshot":
            sql = f"select 0 as id, 'v{step}' as name union all select 1, 'a'"
            project.model(sql, "source", materialized="view")
            config |= {"strategy": "check", "check_cols": "all"}
            snapshot = {"name": "orders", "relation": "ref('source')", "config": config}
            project.write("snapshots/orders.yml", json.dumps({"snapshots": [snapshot]}))
        case "Python model":
            options = ", ".join(f"{name}={value!r}" for name, value in config.items())
            project.write(
                "models/orders.py",
                "def model(dbt, session):\n"
                f"    dbt.config(materialized='table', {options})\n"
                f'    return session.sql("{rows}")\n',
            )
        case _:
            first = step + (kind == "append" and step > 0)
            new = f"select id, 'v{step}' as name from range({first}, {2 + step})"
            config |= {"materialized": "incremental", "incremental_strategy": kind}
            project.model(new, **config)


def told(kind: str, step: int) -> str:
    """What the message of the step's run begins with."""
    if step == 0:
        return "initial +2"
    return "+1 ~0 -0" if kind in ("keyless", "append") else "+1 ~1 -0"
