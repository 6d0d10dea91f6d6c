"""The projects of dbt's tests, whose SQL is that of Postgres, in Spark's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest


class Translated:
    """A test whose project's files are rewritten before it begins.

    Its `translation` has patterns and what is put in their place; each must be found.
    """

    translation: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture(scope="class")
    def project_files(self, project_root: str, project_files: None) -> None:
        found = set()
        for file in [path for path in Path(project_root).rglob("*.*") if path.is_file()]:
            text = file.read_text()
            for pattern, replacement in self.translation.items():
                text, count = re.subn(pattern, replacement, text)
                found |= {pattern} if count else set()
            file.write_text(text)
        assert found == set(self.translation), "dbt's test is not what it was"


def adapted(test: type, *mixins: type, **attributes: Any) -> Any:
    """A test of dbt, with mixins before it and other attributes.

    Args:
        attributes: such as `translation`; `changed_by_hand` names the tables that the test writes
            to with SQL of its own, so that their mirror has not their rows
    """
    return type(test.__name__, (*mixins, Translated, test), attributes)


def configured(**config: Any) -> Any:
    """A fixture with what a test adds to its `dbt_project.yml`."""
    return pytest.fixture(scope="class")(lambda self: config)
