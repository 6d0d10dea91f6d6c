"""The notes of a release on GitHub: the section of its version in CHANGELOG.md.

`python -m tests.release v0.2.0 https://github.com/<owner>/<repository>` prints them.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from hatch_build import absolute_links

ROOT = Path(__file__).parents[1]
VERSION = ROOT / "dbt" / "adapters" / "openmirroring" / "__version__.py"
CHANGELOG = ROOT / "CHANGELOG.md"

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# a line goes on in the next one, unless that begins an item; GitHub shows each line on its own
_WRAPPED = re.compile(r"\n +(?![-*] )(?=\S)")


class ReleaseError(ValueError):
    """A tag that cannot be released."""


def notes(tag: str, version: str, changelog: str, repository: str) -> str:
    """Return the notes of a release, in Markdown with absolute links.

    Args:
        tag: such as `v0.2.0`
        version: of the package
        changelog: the text of CHANGELOG.md
        repository: its URL

    Raises:
        ReleaseError: if the tag is not that of the version, or the changelog has no section with
            the version and a date, or nothing in it
    """
    if tag != f"v{version}":
        raise ReleaseError(f"The tag is {tag}, but __version__.py has {version}: v{version}")
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        name, _, date = heading.strip().partition(" ")
        if name != version:
            continue
        if not _DATE.fullmatch(date.strip("()")):
            raise ReleaseError(f"CHANGELOG.md has no date for {version}: '## {heading}'")
        if not text.strip():
            raise ReleaseError(f"CHANGELOG.md says nothing about {version}")
        return absolute_links(_WRAPPED.sub(" ", text.strip()), repository, tag) + "\n"
    raise ReleaseError(f"CHANGELOG.md has no section '## {version} (<date>)'")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag")
    parser.add_argument("repository", help="its URL")
    arguments = parser.parse_args()
    version = re.search(r'"(.+)"', VERSION.read_text())
    if not version:
        parser.error(f"{VERSION} has no version")
    try:
        print(
            notes(
                arguments.tag,
                version[1],
                CHANGELOG.read_text(encoding="utf-8"),
                arguments.repository.rstrip("/"),
            ),
            end="",
        )
    except ReleaseError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
