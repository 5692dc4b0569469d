"""Files that must agree with each other: version, messages, links, pins, README."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

import samebits

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read(name: str) -> str:
    """Text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def literal_slugs(text: str) -> set[str]:
    """Slugs that the source passes as `slug="..."` or keeps in a constant named `..._SLUG`."""
    nodes = list(ast.walk(ast.parse(text)))
    values = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "slug"]
    assigned = [node for node in nodes if isinstance(node, ast.Assign)]
    values += [node.value for node in assigned if ast.unparse(node.targets[0]).endswith("SLUG")]
    return {value.value for value in values if isinstance(value, ast.Constant)}


def used_slugs() -> set[str]:
    """All slugs of the package."""
    sources = (ROOT / "src").rglob("*.py")
    return set().union(*(literal_slugs(path.read_text(encoding="utf-8")) for path in sources))


def documented_slugs(text: str) -> set[str]:
    """Headings of the page of messages."""
    return set(re.findall(r"^## ([a-z0-9-]+)$", text, flags=re.MULTILINE))


def dependency_names(entries: str) -> set[str]:
    """Names in a list of requirements."""
    return set(re.findall(r'"([a-zA-Z0-9-]+)[><=]', entries))


def test_every_message_is_documented():
    """Each slug has an entry in docs/messages.md, and each entry is used."""
    assert documented_slugs(read("docs/messages.md")) == used_slugs()


def test_slugs_are_found():
    """The search for slugs can find one."""
    assert literal_slugs('raise SamebitsError("x", slug="record-version")') == {"record-version"}
    assert literal_slugs('USAGE_SLUG = "usage"') == {"usage"}


def test_version_is_the_same_everywhere():
    """pyproject.toml, the package and the changelog agree."""
    assert f'\nversion = "{samebits.__version__}"\n' in read("pyproject.toml")
    assert f"\n## {samebits.__version__}" in read("CHANGELOG.md")


def test_readme_is_short():
    """It fits on one screen or two."""
    assert len(read("README.md").splitlines()) <= 60


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Each relative link of a page names a file that exists."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]

    assert missing == []


def test_dependencies_are_explained_and_pinned():
    """Each package that pyproject.toml names is pinned, and explained in docs/dependencies.md."""
    project = read("pyproject.toml")
    lists = r"^(?:requires|dependencies|examples|peers|spread|dev|docs) = \[[^\]]*\]"
    named = dependency_names("\n".join(re.findall(lists, project, re.MULTILINE)))
    pinned = set(re.findall(r"^([a-zA-Z0-9-]+)==", read("constraints.txt"), re.MULTILINE))
    cells = re.findall(r"^\|[^|]*\|", read("docs/dependencies.md"), re.MULTILINE)
    explained = set(re.findall(r"`([a-zA-Z0-9-]+)`", "\n".join(cells)))

    assert {"torch", "numpy", "pytest", "setuptools", "sphinx"} <= named
    assert named - pinned == set()
    assert named - explained == set()


def test_example_flags_are_documented():
    """docs/index.md shows each example."""
    page = read("docs/index.md")

    assert [path.name for path in (ROOT / "examples").glob("*.py") if path.name not in page] == []


def test_makefile_parses():
    """Each target that the head of the Makefile lists exists."""
    targets = re.findall(r"^# make ([a-z-]+)", read("Makefile"), re.MULTILINE)

    assert len(targets) >= 6
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
