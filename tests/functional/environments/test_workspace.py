"""The whole command that asks a Fabric workspace, against stand-ins: with dbt, Spark and Livy.

More faults, which need no Spark, are in `test_workspace_faults.py`.
"""

from __future__ import annotations

import pytest

from tests.functional.environments.test_workspace_faults import (
    HERE,
    OTHERS,
    answers,
    assert_only_changes,
)
from tests.functional.environments.workspace import Run, hears_ctrl_c, run, servers
from tests.workspace.probe import PROBES, Answer
from tests.workspace.stand_ins import FAULTS, StandIns

__all__ = ["hears_ctrl_c", "run", "servers"]  # fixtures


@pytest.mark.needs(session="dbt runs with a Spark of its own")
def test_every_probe_is_answered_and_nothing_is_left(servers: StandIns, run: Run) -> None:
    servers.onelake.speed = 20

    status, result = run("--livy", servers.livy.url, "--rows", "1000")

    assert status == 0
    by_answer: dict[Answer, set[int]] = {}
    for number, answer in answers(result).items():
        by_answer.setdefault(answer, set()).add(number)
    assert by_answer.keys() <= {"as assumed", "answered", "otherwise", "not clear", "not asked"}
    needs = {number for number, probe in PROBES.items() if probe.needs not in ("", "livy")}
    assert by_answer["not asked"] == needs
    assert by_answer["not clear"] == {16}, "no folder is in use"
    assert by_answer["otherwise"] == {12}, "the replicator is stricter than Fabric"
    assert servers.databases == OTHERS
    assert not servers.livy.sessions


@pytest.mark.parametrize("fault", [name for name in FAULTS if name not in HERE])
def test_a_fault_changes_what_it_touches_and_leaves_nothing_behind(
    servers: StandIns, run: Run, fault: str
) -> None:
    assert_only_changes(servers, run, fault)

    is_left = fault == "the removal is refused"
    assert (servers.databases == OTHERS) != is_left
