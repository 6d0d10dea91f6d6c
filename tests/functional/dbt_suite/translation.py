"""The projects of dbt's tests, whose SQL is that of Postgres, in Spark's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest


class Translated:
    """A test whose project's files are rewritten before it begins.

    Its `translation` has patterns and what is put in their place; each must be found.
    """

    translation: ClassVar[Mapping[str, str]]

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
