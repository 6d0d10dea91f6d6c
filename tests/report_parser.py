"""The page of `mirror_report`, as a browser reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

# elements without an end
_VOID = ("meta", "input", "path")


@dataclass
class ParsedTable:
    """A table of the page.

    Args:
        text: of its line
        bars: the titles of the bars in its chart
        batches: the cells of each batch
    """

    name: str = ""
    state: str = ""
    text: str = ""
    bars: list[str] = field(default_factory=list)
    batches: list[list[str]] = field(default_factory=list)

    @property
    def publications(self) -> list[str]:
        return [cells[1] for cells in self.batches]


class Parsed(HTMLParser):
    """The parts of a page.

    Args:
        page: HTML
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.tables: list[ParsedTable] = []
        self.text = ""
        self._open: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.add(tag)
        self.attributes += found.items()
        kind = found.get("class", "")
        if tag == "th":  # its end may be left out
            return
        if tag not in _VOID:
            self._open.append((tag, kind))
        if tag == "details":
            self.tables.append(ParsedTable())
        elif tag == "tr" and self._is_in("tbody"):
            self.tables[-1].batches.append([])
        elif tag == "td":
            self.tables[-1].batches[-1].append("")
        elif tag == "title" and self._is_in("svg"):
            self.tables[-1].bars.append("")
        elif kind == "name":
            self.tables[-1].name = found["title"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag

    def handle_data(self, data: str) -> None:
        if self._is_in("style"):
            return
        self.text += data
        if self._is_in("td"):
            self.tables[-1].batches[-1][-1] += data
        elif self._is_in("svg"):
            if self._is_in("title"):
                self.tables[-1].bars[-1] += data
        elif self._is_in("summary"):
            self.tables[-1].text += data
            if self._open[-1][1].startswith("state "):
                self.tables[-1].state += data

    def _is_in(self, tag: str) -> bool:
        return any(opened == tag for opened, _ in self._open)
