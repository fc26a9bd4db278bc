"""What the documents link and cite is there: files, headings, names in the code."""

import ast
import re
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.architecture.source import OURS, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")])
CITING = [
    page
    for page in PAGES
    if page.parent.name in ("packages", "adr") or page.name in ("design.md", "AGENTS.md")
]
"""Pages that tell where in the code something is."""

SUFFIXES = (".py", ".sql", ".json", ".md", ".jsont", ".toml", ".yaml")
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
NAME = re.compile(r"([A-Za-z_][\w.]*\.)?([A-Za-z_]\w*)(\(\))?")
CLASS = re.compile(r"([A-Z]\w*[a-z]\w*)(?:\.(\w+))?(?:\(\))?")
FOREIGN = {"Host", "HttpToolsProtocol"}
"""Names of others: of HTTP, of uvicorn."""


def label(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text())):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def problem(page: Path, link: str) -> str | None:
    """What is wrong with a relative link; None when it leads somewhere."""
    place, _, anchor = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    if not target.exists():
        return f"{link}: there is no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: there is no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    text = CODE.sub("", FENCE.sub("", page.read_text()))
    links = {link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)}
    assert [found for link in sorted(links) if (found := problem(page, link))] == []


@cache
def sources() -> tuple[Path, ...]:
    """All code and SQL, but this file."""
    folders = [ROOT / folder for folder in (*OURS, "tests")]
    found = (folder.rglob(pattern) for folder in folders for pattern in ("*.py", "*.sql"))
    return tuple(file for file in chain(*found) if file != Path(__file__))


@cache
def words() -> frozenset[str]:
    """Every word of the code, and every name of a file or folder."""
    names = chain.from_iterable(file.relative_to(ROOT).parts for file in sources())
    texts = (re.findall(r"\w+", file.read_text()) for file in sources())
    return frozenset(chain(names, *texts))


@cache
def classes() -> dict[str, set[str]]:
    """The words of every class, all of one name taken together."""
    found: dict[str, set[str]] = {}
    for file in sources():
        if file.suffix == ".py":
            lines = file.read_text().splitlines()
            for node in ast.walk(ast.parse("\n".join(lines))):
                if isinstance(node, ast.ClassDef):
                    text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                    found.setdefault(node.name, set()).update(re.findall(r"\w+", text))
    return found


@cache
def is_spelled(name: str) -> bool:
    """Whether the code has a name of a file that it makes while it runs."""
    return any(name in file.read_text() for file in sources())


@cache
def files() -> tuple[str, ...]:
    every = (*ROOT.glob("*"), *chain(*((ROOT / one).rglob("*") for one in FOLDERS)))
    return tuple(f"/{file.relative_to(ROOT).as_posix()}" for file in every)


FOLDERS = (*OURS, "tests", "docs", "deploy", ".ci")


def unknown(cited: str) -> bool:
    """Whether what stands in backticks names a file, or a part of the code, that is not there."""
    if cited in SUFFIXES:
        return False
    if cited.endswith(SUFFIXES) and not set(cited) & set("*{<…$ "):
        return not any(file.endswith(f"/{cited}") for file in files()) and not is_spelled(cited)
    if cited.endswith("/") and cited.split("/")[0] in FOLDERS:
        return not (ROOT / cited).is_dir()
    if re.fullmatch(r"c?acp/[a-zA-Z/]+", cited):
        return f"`{cited}`" not in (ROOT / "docs/methods.md").read_text()
    if cited.startswith("CACP_") and f"`{cited}`" in (ROOT / "docs/settings.md").read_text():
        return False
    if (named := CLASS.fullmatch(cited)) is not None:
        return named[1] not in FOREIGN and (named[2] or named[1]) not in classes().get(named[1], ())
    name = NAME.fullmatch(cited)
    return name is not None and not set(filter(None, cited.strip("()").split("."))) <= words()


@pytest.mark.parametrize("page", CITING, ids=label)
def test_every_name_that_is_cited_is_in_the_code(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    cited = {" ".join(found.split()) for _, found in CODE.findall(text)}
    assert sorted(filter(unknown, cited)) == []


def test_sections_of_the_design_that_are_cited_are_there() -> None:
    there = set(re.findall(r"^## (\d+)\.", (ROOT / "docs/design.md").read_text(), re.MULTILINE))
    cited = {
        number
        for file in sources()
        if "migrations" not in file.parts
        for number in re.findall(r"[Dd]esign\s+§(\d+)", file.read_text())
    }
    assert cited <= there
    assert len(there) > 9
