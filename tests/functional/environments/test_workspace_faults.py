"""The whole command against stand-ins: it answers, stops nothing, and leaves nothing behind."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.functional.environments.workspace import (
    CLAIMS,
    TOKEN,
    Run,
    hears_ctrl_c,
    run,
    servers,
)
from tests.workspace import __main__
from tests.workspace.__main__ import main
from tests.workspace.probe import Answer
from tests.workspace.result import Result
from tests.workspace.stand_ins import NAME, StandIns, planted

__all__ = ["hears_ctrl_c", "run", "servers"]  # fixtures

OTHERS = ["sales of others"]

# quick ones, of which each fault meets some
SOME = ("3", "7", "8", "20", "22", "33", "36", "39")

# those that wait for Fabric
TABLES = (3, 7, 8, 33, 36)

# what changes with a fault: the answers of some probes, and the exit status
CHANGES: dict[str, tuple[dict[int, Answer], int]] = {
    "a table fails": ({8: "otherwise"}, 0),
    "the database never runs": ({39: "otherwise", **dict.fromkeys(TABLES, "not asked")}, 0),
    "a rename is refused": ({8: "failed"}, 0),
    "marker 4 is not understood": ({7: "otherwise"}, 0),
    "403 in the middle": (dict.fromkeys(TABLES, "failed"), 0),
    "Ctrl-C": (dict.fromkeys(TABLES, "not asked"), 2),
    "Ctrl-C twice": (dict.fromkeys(TABLES, "not asked"), 2),
    "the removal is refused": ({}, 1),
    "the answer to the creation is lost": (
        {39: "failed", 20: "not asked", 22: "not asked", **dict.fromkeys(TABLES, "not asked")},
        1,
    ),
    "the REST API is down for a while": ({}, 0),
    "conditions are ignored": ({20: "otherwise", **dict.fromkeys(TABLES, "failed")}, 0),
    "no SQL analytics endpoint": ({36: "failed"}, 0),
    "the token expires": (dict.fromkeys(TABLES, "failed"), 0),
}


def answers(result: Result) -> dict[int, Answer]:
    return {each.probe: each.answer for each in result.observations}


def assert_only_changes(servers: StandIns, run: Run, fault: str) -> None:
    """With a fault, exactly the probes that it touches have another answer."""
    changes, expected = CHANGES[fault]
    with planted(servers, fault):
        status, result = run("--only", *SOME)

    assert status == expected
    found = answers(result)
    assert {int(number): found[int(number)] for number in SOME} == {
        **dict.fromkeys(map(int, SOME), "as assumed"),
        **changes,
    }


# the others are in functional/environments/test_workspace.py
HERE = (
    *("a table fails", "403 in the middle", "Ctrl-C twice"),
    "the answer to the creation is lost",
)


@pytest.mark.parametrize("fault", HERE)
def test_a_fault_changes_what_it_touches_and_leaves_nothing_behind(
    servers: StandIns, run: Run, fault: str
) -> None:
    assert_only_changes(servers, run, fault)
    assert servers.databases == OTHERS


def test_what_is_left_is_named_and_removed_as_the_message_says(
    servers: StandIns, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = servers.fabric._answer
    with planted(servers, "the removal is refused"):
        _, result = run("--only", "20")
    name = f"dbt_openmirroring_probe_{result.run}"
    assert servers.databases == [*OTHERS, name]
    servers.fabric._answer = answer  # type: ignore[method-assign]

    told = capsys.readouterr().out
    [how] = re.findall(
        rf"There is still the mirrored database {name}. To remove it: .+: (.+)", told
    )
    program, *arguments = shlex.split(how.replace("<workspace>", f"'{NAME}'"))[2:]
    assert program == "tests.workspace"
    assert main([*arguments, "--authentication", "cli"]) == 0

    assert servers.databases == OTHERS


def test_a_run_that_is_kept_is_asked_again_and_then_removed(
    servers: StandIns, run: Run, tmp_path: Path
) -> None:
    status, first = run("--only", "17", "20", "--keep")
    name = f"dbt_openmirroring_probe_{first.run}"
    assert (status, servers.databases) == (0, [*OTHERS, name])
    table = servers.onelake.landing_zone / "probes.schema" / "old_files"
    for file in (table / "_ProcessedFiles").iterdir():
        file.unlink()  # a week has passed

    status, second = run("--again", str(tmp_path / "results" / f"{first.run}.json"))

    assert status == 0
    assert answers(second)[10] == answers(second)[17] == "as assumed"
    assert answers(second)[20] == "as assumed", "it is that of the first run"
    assert servers.databases == OTHERS


def test_the_answers_of_a_paused_capacity_are_seen_and_nothing_is_left(
    servers: StandIns, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, tell = servers.fabric.workspaces[0], __main__._tell

    def user_does(told: str) -> None:
        tell(told)
        if told.startswith(("Pause", "Resume")):
            workspace.capacity_paused = told.startswith("Pause")
            workspace.databases[-1].statuses = ["Paused"]

    monkeypatch.setattr(__main__, "_tell", user_does)

    status, result = run("--pause-capacity", "--only", "35")

    assert status == 0
    [found] = [each for each in result.observations if each.probe == 35]
    assert found.answer == "as assumed"
    assert found.facts == {"status": 404, "code known": True, "then": "Paused"}
    assert servers.databases == OTHERS


def test_a_run_that_was_removed_cannot_be_asked_again(
    servers: StandIns, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = run("--only", "39")

    again = ["--again", str(tmp_path / "results" / f"{first.run}.json")]
    assert main([NAME, *again, "--authentication", "cli"]) == 1

    assert "has removed its mirrored database" in capsys.readouterr().err
    assert servers.databases == OTHERS


def test_a_workspace_that_nobody_sees_is_an_error_before_anything_is_created(
    servers: StandIns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["Finance", "--authentication", "cli", "--folder", str(tmp_path)]) == 1

    assert "no workspace 'Finance'" in capsys.readouterr().err
    assert servers.databases == OTHERS


def test_a_result_has_no_name_no_id_no_address_and_no_secret(
    servers: StandIns, run: Run, tmp_path: Path
) -> None:
    workspace = servers.fabric.workspaces[0].id
    planted_texts = {
        *CLAIMS.values(),
        *("Lovelace", NAME, workspace, TOKEN, "s3cret~of.the.application"),
        *("onelake.dfs.fabric.microsoft.com", "https://contoso.sharepoint.com/sites/sales"),
        *("bob@fabrikam.com", "?sv=2024-01-01&sig=abc%3D", "Bob Smith", "10.1.2.3"),
        "cccccccc-1111-4222-8333-444444444444",
    }
    servers.broken["deleted"] = f"The table failed: {' and '.join(planted_texts)}."
    servers.fabric.fail("refreshMetadata", 403, f"In {NAME} for {CLAIMS['upn']}", times=9)

    run("--only", "8", "36", "39")

    [database] = servers.fabric.workspaces[0].databases
    planted_texts |= {database.id}
    for kind in ("json", "md"):
        [path] = (tmp_path / "results").glob(f"*.{kind}")
        text = path.read_text()
        assert "The table failed" in text
        assert not [each for each in planted_texts if each.casefold() in text.casefold()]
        assert not re.search(r"lovelace|contoso|fabrikam|smith", text, re.IGNORECASE)
