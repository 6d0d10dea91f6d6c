"""README and docs: links, examples, tables of options and quoted messages are true."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import jinja2
import jinja2.nodes
import pytest
import yaml
from dbt.artifacts.resources.v1.config import NodeConfig as DbtConfig
from dbt.artifacts.resources.v1.snapshot import SnapshotConfig
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.destination.destination import Target
from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.node.config import (
    EVERYWHERE,
    INCREMENTAL,
    NodeConfig,
    OpenMirroringConfig,
)
from dbt.adapters.openmirroring.operations.project_tables import TableStatus
from dbt.adapters.openmirroring.operations.status import (
    Problem,
    batch_record,
    service_record,
    table_record,
)
from dbt.adapters.openmirroring.service.authentication import Identity
from dbt.adapters.openmirroring.service.reports import ServiceReport
from tests.operations_page import PAGE, operations_page
from tests.pages import FENCE, ROOT, Block, blocks_of, source_texts, text_of

DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
OTHERS = [*sorted(ROOT.glob("*.md")), ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ROW = re.compile(r"^\| (`.+?) \| (.+?) \| .+ \|$", re.MULTILINE)

# settings of dbt itself in an output of a profile
OF_EVERY_PROFILE = {"type", "threads"}

OPTIONS = {
    *(field.name for field in fields(OpenMirroringConfig)),
    *(field.name for field in fields(DbtConfig)),
    *(field.name for field in fields(SnapshotConfig)),
    # dbt and dbt-spark read these without declaring them
    *("hard_deletes", "tblproperties"),
    # a tool reads this one
    "dbt-osmosis",
}


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MkDocs make it."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def outputs(block: Block) -> list[dict[str, Any]]:
    """The outputs of a profile, or a part of one."""
    content = yaml.safe_load(block.text)
    if block.title != "profiles.yml":
        return [content]
    return [output for profile in content.values() for output in profile["outputs"].values()]


def configs(block: Block) -> list[dict[str, Any]]:
    """The configurations of nodes in an example."""
    match block.language:
        case "sql":
            calls = jinja2.Environment().parse(block.text).find_all(jinja2.nodes.Call)
            found = [call.kwargs for call in calls if getattr(call.node, "name", "") == "config"]
            return [{each.key: each.value.as_const() for each in kwargs} for kwargs in found]
        case "python":
            return [
                {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
                for node in ast.walk(ast.parse(block.text))
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "config"
            ]
    return list(configs_in(yaml.safe_load(block.text)))


def configs_in(content: Any) -> Iterator[dict[str, Any]]:
    """The configurations in a `dbt_project.yml`, and in files of properties."""
    if isinstance(content, list):
        for each in content:
            yield from configs_in(each)
    if not isinstance(content, Mapping):
        return
    if "config" in content:
        yield content["config"]
    options = {name[1:]: value for name, value in content.items() if name.startswith("+")}
    if options:
        yield options
    for name, value in content.items():
        if not name.startswith("+"):
            yield from configs_in(value)


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PROFILES = [block for block in BLOCKS if block.title.startswith("profiles.yml")]
NODES = [
    block
    for block in BLOCKS
    if re.match(r"(models|snapshots|seeds)/|dbt_project\.yml", block.title)
]


@pytest.mark.parametrize("page", [*DOCS, *OTHERS], ids=lambda page: page.name)
def test_every_link_to_a_file_and_every_anchor_is_there(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    for link in LINK.findall(text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor:
            page_text = FENCE.sub("", target.read_text())
            anchors = {*map(slug, HEADING.findall(page_text)), *ANCHOR.findall(page_text)}
            assert anchor in anchors, link
            assert "--" not in anchor, f"MkDocs would make another anchor of {link}"


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language in ("yaml", "json")], ids=str
)
def test_yaml_and_json_can_be_read_and_say_which_file_they_are(block: Block) -> None:
    assert block.title
    assert json.loads(block.text) if block.language == "json" else yaml.safe_load(block.text)


@pytest.mark.parametrize("block", PROFILES, ids=str)
def test_a_profile_in_an_example_is_valid(block: Block) -> None:
    known = {field.name for field in fields(OpenMirroringCredentials)} | OF_EVERY_PROFILE
    needed = {"schema": "analytics", "landing_zone": "Files/LandingZone"}
    for output in outputs(block):
        assert not output.keys() - known

        settings = {k: v for k, v in output.items() if k not in OF_EVERY_PROFILE}
        # the names of workspace and item are left to the reader
        values = yaml.safe_load(re.sub("[<>]", "", json.dumps(needed | settings)))
        OpenMirroringCredentials.from_dict(values)


@pytest.mark.parametrize("block", [b for b in NODES if not b.is_refused], ids=str)
def test_the_options_in_an_example_are_valid(block: Block) -> None:
    for config in configs(block):
        assert not config.keys() - OPTIONS

        NodeConfig.parse({"materialized": "table", **config})


@pytest.mark.parametrize("block", [b for b in NODES if b.is_refused], ids=str)
def test_the_options_in_an_example_of_a_refusal_are_refused(block: Block) -> None:
    (config,) = configs(block)

    with pytest.raises(CompilationError):
        NodeConfig.parse(config)


def options_in_table(headline: str) -> dict[str, str]:
    """The options of a table in the page of the configuration, with their defaults."""
    rows = ROW.findall(text_of(ROOT / "docs" / "configuration.md", headline))
    return {name: default for names, default in rows for name in re.findall(r"`(\w+)`", names)}


def test_the_table_of_settings_has_those_of_the_profile() -> None:
    classes = (Identity, Target, OpenMirroringCredentials)
    ours = {name for each in classes for name in each.__annotations__} - {"password"}

    assert options_in_table("The profile").keys() == ours | {"schema"}


def test_the_table_of_options_has_those_of_a_node_and_their_defaults() -> None:
    told = options_in_table("A model, seed or snapshot")

    assert told.keys() == OpenMirroringConfig.__annotations__.keys() | {"unique_key"}
    for name, default in told.items():
        actual = getattr(NodeConfig, name)
        if isinstance(actual, (str, bool)):
            assert default.startswith(f"`{str(actual).lower()}`"), name


def test_the_tables_of_json_have_each_field_that_operations_print() -> None:
    section = (ROOT / "docs" / "operations.md").read_text().partition("\n## JSON")[2]
    rows = re.findall(r"^\| (.+) \|", section.partition("\n## ")[0], re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    status = TableStatus("sales.orders", "not published", None)
    time = "2026-11-23T06:00:00.000+00:00"
    id_ = "2026112306000000000000"
    batch = PastBatch(id_, time, "initial", "", RowCounts(), 1, 1, 1, "", id_)
    calls = [
        node
        for path in (ROOT / "dbt" / "adapters" / "openmirroring" / "operations").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and "to_json" in ast.unparse(node.func)
    ]
    printed = {
        *(keyword.arg for call in calls for keyword in call.keywords),
        *(field.name for field in fields(Problem)),
        *service_record(ServiceReport(), ""),
        *table_record(status),
        *batch_record("sales.orders", batch),
    }

    assert not printed - told


def test_the_words_of_the_code_name_what_is_in_it() -> None:
    page = (ROOT / "docs" / "contributing" / "how-it-works.md").read_text()
    _, _, glossary = page.partition("\n## The words of the code\n")
    cells = re.findall(r"^\| .+ \| .+ \| (`.+) \|$", glossary, re.MULTILINE)
    defined = {
        node.name
        for path in (ROOT / "dbt").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    }

    assert len(cells) == glossary.count("\n| ") - 1, "each word has a name"
    assert not {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} - defined


def test_the_page_of_operations_is_made_from_their_code() -> None:
    assert PAGE.read_text() == operations_page(), "run python -m tests.operations_page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_line_that_installs_names_a_folder_a_wheel_of_this_version_or_an_address(
    page: Path,
) -> None:
    wheel = f"/dbt_openmirroring-{version}-py3-none-any.whl"
    known = (wheel, "./dbt-openmirroring", "git+https://", "once it is released")
    for line in re.findall(r"^.*pip install .*openmirroring.*$", page.read_text(), re.MULTILINE):
        assert any(each in line for each in known), line


def test_every_refused_option_of_another_adapter_is_reported() -> None:
    section = text_of(ROOT / "docs" / "packages.md", "From dbt-databricks")
    # the second one is another spelling of the first
    refused = {*EVERYWHERE, *INCREMENTAL} - {"skip_non_matched_step"}

    assert not [name for name in refused if not re.search(rf"`{name}\b", section)]


MESSAGES = (ROOT / "docs" / "messages.md").read_text()
HEADINGS = re.findall(r"^### .+</a>(OM\d+): (.+)$", MESSAGES, re.MULTILINE)
TEXTS = [text for text, _ in source_texts()]


def test_the_page_of_messages_has_a_section_for_each_code_of_the_source() -> None:
    codes = [code for code, _ in HEADINGS]

    assert codes == sorted({code for text in TEXTS for code in re.findall(r"\bOM\d{3}\b", text)})
    assert re.findall(r'^### <a id="(.+?)"', MESSAGES, re.MULTILINE) == list(map(str.lower, codes))
    for number, section in enumerate(MESSAGES.split("\n## ")[1:], 1):
        assert set(re.findall(r"^### .*OM(\d)", section, re.MULTILINE)) == {str(number)}


@pytest.mark.parametrize("words", [words for _, words in HEADINGS])
def test_the_words_of_a_section_are_in_the_source(words: str) -> None:
    pattern = re.compile(".*".join(map(re.escape, words.split("..."))))

    assert any(map(pattern.search, TEXTS))


@pytest.mark.parametrize("page", [*DOCS, *OTHERS, *WORKFLOWS], ids=lambda page: page.name)
def test_every_make_target_and_every_operation_is_there(page: Path) -> None:
    targets = re.findall(r"^([a-z][a-z -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    known = {target for names in targets for target in names.split()}
    operations = (ROOT / "macros" / "operations" / "operations.sql").read_text()
    text = page.read_text()

    for command in re.findall(r"(?:`|\$ |run: )make((?: [a-z-]+)+)", text):
        assert not set(command.split()) - known, command
    for operation in re.findall(r"run-operation (mirror_\w+)", text):
        assert f"macro {operation}(" in operations


def test_workflows_and_templates_can_be_read() -> None:
    for path in (ROOT / ".github").rglob("*.yml"):
        assert yaml.safe_load(path.read_text())


class SiteLoader(yaml.SafeLoader):
    """Reads `mkdocs.yml`, whose tags only MkDocs knows."""


SiteLoader.add_multi_constructor("", lambda *_: None)


def pages_in(navigation: Any) -> Iterator[str]:
    """The pages in a part of the navigation."""
    if isinstance(navigation, str):
        yield navigation
    else:
        for each in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from pages_in(each)


def test_the_navigation_of_the_site_has_each_page_once() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(), SiteLoader)

    pages = [str(page.relative_to(ROOT / "docs")) for page in DOCS]
    assert sorted(pages_in(site["nav"])) == sorted(pages)


HOME = ROOT / "docs" / "index.md"
FOR_USERS = [page for page in DOCS if page.parent == HOME.parent]


def test_users_find_sixteen_pages_and_sixteen_thousand_words() -> None:
    assert len([page for page in FOR_USERS if page != HOME]) <= 16
    assert sum(len(page.read_text().split()) for page in FOR_USERS) <= 16_000


def test_the_home_page_leads_to_each_page_for_users() -> None:
    pages = {page.name for page in FOR_USERS} - {HOME.name}

    assert set(re.findall(r"\| \[[^\]]+\]\(([\w-]+\.md)\) \|", HOME.read_text())) == pages
