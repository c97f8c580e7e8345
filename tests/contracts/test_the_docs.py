"""The pages say what the house does: links, commands, and the picture that equals the import contract."""

import re
import tomllib
from itertools import pairwise, product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
}
# The contracts that the picture shows as crossed lines, and the one it shows as a labelled arrow.
CROSSED = ("simulator-alone", "local-alone", "cli-by-http")
PARTLY = ("simulator-gateway",)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[str]:
    """The relative links of a page, without anchors."""
    found = [link.partition("#")[0] for link in LINK.findall(text_of(page))]
    return [link for link in found if link and "://" not in link]


def picture(page: str) -> str:
    blocks: list[str] = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 1, "one picture, one contract"
    return blocks[0]


def rows_of(drawn: str) -> dict[str, set[str]]:
    """The rows of the picture with their rooms."""
    return {name: set(body.split()) for name, body in re.findall(r"subgraph (\w+)\n(.*?)\bend\b", drawn, re.DOTALL)}


def chain_of(drawn: str) -> list[str]:
    """The rows in the order in which they may import."""
    chain = [line.strip().split(" --> ") for line in drawn.splitlines() if re.fullmatch(r"\s*\w+( --> \w+)+", line)]
    assert len(chain) == 1
    return chain[0]


def crossed_of(drawn: str) -> set[tuple[str, str]]:
    """The pairs of rooms that a crossed line keeps apart."""
    rows = rows_of(drawn)
    found: set[tuple[str, str]] = set()
    for left, right in re.findall(r"(?m)^\s*(.+?) --x (.+?)\s*$", drawn):
        ends = [{room for end in side.split(" & ") for room in rows.get(end, {end})} for side in (left, right)]
        found |= set(product(*ends))
    return found


def partly_of(drawn: str) -> dict[tuple[str, str], set[str]]:
    """The arrows that hold for some modules only."""
    found = re.findall(r"(?m)^\s*(\w+) -- ([\w ]+) only --> (\w+)\s*$", drawn)
    return {(left, right): set(label.split(" and ")) for left, label, right in found}


def test_the_picture_has_the_layers_of_the_contract() -> None:
    drawn = picture(text_of(DOCS / "architecture.md"))
    rows = rows_of(drawn)
    assert [rows[row] for row in chain_of(drawn)] == [
        set(layer.split(" | ")) for layer in CONTRACTS["layers"]["layers"]
    ]


def test_the_crossed_lines_are_the_forbidden_contracts() -> None:
    forbidden = {
        pair
        for id_ in CROSSED
        for pair in product(CONTRACTS[id_]["source_modules"], CONTRACTS[id_]["forbidden_modules"])
    }
    assert crossed_of(picture(text_of(DOCS / "architecture.md"))) == forbidden


def test_the_labelled_arrow_names_the_modules_that_are_allowed() -> None:
    allowed = {
        (contract["source_modules"][0], contract["forbidden_modules"][0]): {
            line.rpartition(".")[2] for line in contract["ignore_imports"]
        }
        for contract in (CONTRACTS[id_] for id_ in PARTLY)
    }
    assert partly_of(picture(text_of(DOCS / "architecture.md"))) == allowed


def test_every_contract_between_rooms_is_drawn() -> None:
    inside = {"pure-kernel", "control-plane-layers", "control-plane-adapters"}
    assert set(CONTRACTS) == {"layers", *CROSSED, *PARTLY} | inside


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("    cli --x works\n", ""),
        ("        policies\n", ""),
        ("--> stage --> works", "--> works --> stage"),
        ("router and affinity only", "router only"),
    ],
)
def test_a_changed_picture_is_noticed(line: str, changed: str) -> None:
    drawn = picture(text_of(DOCS / "architecture.md"))
    other = drawn.replace(line, changed)
    assert drawn != other
    read = [(rows_of(d), chain_of(d), crossed_of(d), partly_of(d)) for d in (drawn, other)]
    assert read[0] != read[1]


def test_the_architecture_describes_every_room() -> None:
    described = set(re.findall(r"(?m)^\| `(\w+)` \|", text_of(DOCS / "architecture.md")))
    assert described == {path.parent.name for path in ROOT.glob("*/py.typed")}


def test_every_page_is_linked_from_the_index() -> None:
    linked = {(DOCS / link).resolve() for link in links(DOCS / "index.md")}
    unlinked = [name_of(page) for page in DOCS.rglob("*.md") if page.name != "index.md" and page not in linked]
    assert not unlinked, unlinked


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    dead = [link for link in links(page) if not (page.parent / link).exists()]
    assert not dead, dead


def anchors(page: Path) -> set[str]:
    """The headings of a page, as they are linked to."""
    headings = re.findall(r"(?m)^#+ (.+)$", text_of(page))
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_into_a_page_meets_a_heading(page: Path) -> None:
    found = [link.partition("#") for link in LINK.findall(text_of(page)) if "#" in link and "://" not in link]
    dead = [
        f"{target}#{anchor}"
        for target, _, anchor in found
        if anchor not in anchors(page.parent / target if target else page)
    ]
    assert not dead, dead


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_opens_with_its_title(page: Path) -> None:
    assert text_of(page).startswith("# ")
    assert text_of(page).count("\n```") % 2 == 0, "a block of code is not closed"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_make_commands_of_a_page_exist(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", text_of(ROOT / "Makefile")))
    named = set(re.findall(r"(?m)(?:^|`)make ([a-z][a-z-]*)", text_of(page)))
    assert named <= targets, named - targets


def test_every_make_command_that_is_listed_is_explained() -> None:
    listed = set(re.findall(r"(?m)^([a-z][a-z-]*):.*## ", text_of(ROOT / "Makefile"))) - {"help"}
    assert listed <= set(re.findall(r"`make ([a-z-]+)`", text_of(DOCS / "guides" / "work-on-the-house.md")))


def test_the_readme_starts_with_the_demo_and_the_tests() -> None:
    commands = re.findall(r"(?m)^make (\w+)", text_of(ROOT / "README.md"))
    assert commands[:2] == ["demo", "test"]


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(page.name.partition("-")[0]) for page in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers
    assert numbers[0] == 1
    assert all(later == earlier + 1 for earlier, later in pairwise(numbers))


def test_the_changelog_is_kept() -> None:
    assert "## [Unreleased]" in text_of(ROOT / "CHANGELOG.md")
