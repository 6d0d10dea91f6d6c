"""A job for each pull request shows what it would publish."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.recipes.recipe import Recipe

WORKFLOW = ".github/workflows/pull-request.yml"


class PullRequest:
    """A branch of the project's repository, and the job that checks it."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.git("init")
        self.base = self.commit()

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=shop", "-c", "user.email=shop@example.com"]
        command = ["git", *who, *arguments]
        result = subprocess.run(
            command, cwd=self.recipe.folder, check=True, capture_output=True, text=True
        )
        return result.stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all", "--", ".", ":!.venv")
        self.git("commit", "--message", "models")
        return self.git("rev-parse", "HEAD")

    def check(self) -> tuple[bool, str]:
        """Run the steps of the job; return whether it is green, and its summary."""
        head, runner = self.commit(), self.recipe.folder.parent
        values = {"github.event.pull_request.base.sha": self.base, "github.sha": head}
        environment = {"RUNNER_TEMP": str(runner), "GITHUB_STEP_SUMMARY": str(runner / "summary")}
        workflow = yaml.safe_load((self.recipe.folder / WORKFLOW).read_text())
        green = True
        for step in workflow["jobs"]["changes"]["steps"]:
            command = step.get("run", "")
            # the environment is that of the recipe
            if not command or command.startswith("pip "):
                continue
            for name, value in values.items():
                command = command.replace(f"${{{{ {name} }}}}", value)
            if green or step.get("if") == "always()":
                green &= not self.recipe.shell(command, environment).returncode
        return green, (runner / "summary").read_text()


@pytest.fixture
def pull_request(tmp_path: Path) -> PullRequest:
    recipe = Recipe("Pull requests", tmp_path / "shop")
    recipe.set_up()
    return PullRequest(recipe)


def test_the_summary_says_what_would_be_published_and_nothing_is(
    pull_request: PullRequest,
) -> None:
    recipe = pull_request.recipe
    recipe.replace("models/orders.sql", "id % 3", "if(id = 7, 3, id % 3)")
    recipe.replace("models/orders.sql", "range(6)", "range(8)")

    green, summary = pull_request.check()

    assert green
    assert "would publish +2 ~0 -0" in summary
    assert "would publish +1 ~1 -0" in summary
    assert recipe.published() == {"orders": [6], "customers": [3]}
