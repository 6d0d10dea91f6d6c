"""The examples in pages of the documentation, and the texts of the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[1]

FENCE = re.compile(r'^( *)```(\w+)(?: title="(.+?)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
_HEREDOC = re.compile(r"cat > (\S+) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """An example.

    Args:
        title: the file that it is, or is part of; empty if it does not say
    """

    page: str
    language: str
    title: str
    text: str

    @property
    def is_refused(self) -> bool:
        return self.title.endswith("(refused)")

    def __str__(self) -> str:
        return f"{self.page}: {self.title or self.text[:40]}"


def text_of(page: Path, section: str = "") -> str:
    """The text of a page, or of one of its sections.

    Args:
        section: its headline of the second level
    """
    text = page.read_text()
    if not section:
        return text
    return f"\n{text}".partition(f"\n## {section}\n")[2].partition("\n## ")[0]


def blocks_of(page: Path, section: str = "") -> Iterator[Block]:
    """The examples of a page or of one of its sections, and the files that they write."""
    for _, language, title, text in FENCE.findall(text_of(page, section)):
        yield Block(page.name, language, title, dedent(text))
        for name, content in _HEREDOC.findall(text):
            kind = {".yml": "yaml", ".sql": "sql"}[Path(name).suffix]
            yield Block(page.name, kind, name, content)


def source_texts() -> Iterator[tuple[str, str]]:
    """The texts in the source, with `...` for what is put in, each with the code of its error."""
    for path in (ROOT / "dbt").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        codes = {
            node: str(each.value.value)
            for call in nodes
            if isinstance(call, ast.Call)
            for each in call.keywords
            if each.arg == "code" and isinstance(each.value, ast.Constant)
            for node in ast.walk(call)
        }
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "..." for p in node.values]
                yield "".join(map(str, parts)), codes.get(node, "")
            elif isinstance(node, ast.Constant) and node not in docstrings:
                yield str(node.value), codes.get(node, "")
    for path in (ROOT / "macros").rglob("*.sql"):
        yield path.read_text(), ""
