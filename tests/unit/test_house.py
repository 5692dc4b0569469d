"""Files that must agree with each other: version, messages, links, pins, README."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import samebits
from samebits.causes import Cause

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    """Each slug has an entry in docs/reference/messages.md, and each entry is used."""
    assert documented_slugs(read("docs/reference/messages.md")) == used_slugs()


def test_slugs_are_found():
    """The search for slugs can find one."""
    assert literal_slugs('raise SamebitsError("x", slug="record-version")') == {"record-version"}
    assert literal_slugs('USAGE_SLUG = "usage"') == {"usage"}


def test_version_is_the_same_everywhere():
    """pyproject.toml, the package and the changelog agree."""
    assert f'\nversion = "{samebits.__version__}"\n' in read("pyproject.toml")
    assert f"\n## {samebits.__version__}" in read("CHANGELOG.md")
    assert f"\nversion: {samebits.__version__}\n" in read("CITATION.cff")


def test_the_site_has_the_version_in_its_address():
    """Each release leads to its own pages."""
    for address in re.findall(r'^Documentation = "(.+)"', read("pyproject.toml"), flags=re.MULTILINE):
        assert address.rstrip("/").endswith(f"/{samebits.__version__}")


def disagreements(project: dict, citation: str, page: str) -> list[str]:
    """Return what is wrong with the addresses of the project: in all places, or in none."""
    urls = project.get("urls", {})
    source = re.findall(r"^repository-code: (.+)$", citation, re.MULTILINE)
    if not urls:
        return ["repository-code without project.urls"] if source else []
    wrong = [f"no {name}" for name in ("Documentation", "Source", "Changelog", "Issues") if name not in urls]
    if source != [urls.get("Source")]:
        wrong.append("repository-code is not Source")
    return wrong + (["OWNER in docs/how-to/ci.md"] if "OWNER" in page else [])


def test_the_addresses_of_the_project_agree():
    """PyPI, the citation and the pages lead to one place. No address is invented before there is one."""
    page, citation = read("docs/how-to/ci.md"), read("CITATION.cff")
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert disagreements(project, citation, page) == []

    hosted = dict.fromkeys(("Documentation", "Changelog", "Issues"), "https://a.example/x")
    given = {"urls": {**hosted, "Source": "https://a.example/y"}}
    assert disagreements(given, "repository-code: https://a.example/y\n", "") == []
    assert disagreements({}, "repository-code: https://a.example/y\n", "OWNER") != []
    assert len(disagreements({"urls": hosted}, "", "OWNER")) == 3


def test_the_citation_has_the_words_of_the_package():
    """Keywords and the license."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    words = re.findall(r"^  - (\w+)$", read("CITATION.cff"), re.MULTILINE)
    assert words == project["keywords"]
    assert f"\nlicense: {project['license']}\n" in read("CITATION.cff")


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
    lists = r"^(?:requires|dependencies|examples|peers|spread|report|dev|docs) = \[[^\]]*\]"
    named = dependency_names("\n".join(re.findall(lists, project, re.MULTILINE)))
    pinned = set(re.findall(r"^([a-zA-Z0-9-]+)==", read("constraints.txt"), re.MULTILINE))
    cells = re.findall(r"^\|[^|]*\|", read("docs/dependencies.md"), re.MULTILINE)
    explained = set(re.findall(r"`([a-zA-Z0-9-]+)`", "\n".join(cells)))

    assert {"torch", "numpy", "pytest", "setuptools", "sphinx"} <= named
    assert named - pinned == set()
    assert named - explained == set()


def named_pages(folder: str) -> set[str]:
    """Pages that the files of a folder name, such as `docs/reference/digest.md`."""
    paths = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".h", ".c", ".txt"}]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return set(re.findall(r"(?<![\w/.])docs/[a-z/-]+[.]md", "\n".join(texts)))


@pytest.mark.parametrize("folder", ["src", "tests", "bench", "native", "bindings"])
def test_pages_that_are_named_exist(folder):
    """Messages, docstrings and comments send the reader to pages that are there."""
    assert [page for page in named_pages(folder) if not (ROOT / page).exists()] == []


def test_named_pages_are_found():
    """The search for names of pages finds those of messages and of the numerics."""
    assert "docs/reference/messages.md" in named_pages("src")
    assert "docs/reference/portable-numerics.md" in named_pages("native")


def test_glossary_is_short():
    """It has at most 25 words."""
    words = re.findall(r"^\| \*\*", read("docs/reference/glossary.md"), re.MULTILINE)

    assert 20 <= len(words) <= 25


def test_every_cause_is_explained():
    """docs/explanation/causes.md has each cause, and no other."""
    page = read("docs/explanation/causes.md")

    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == {cause.value for cause in Cause}


@pytest.mark.parametrize("package", ["", ".checkpoint", ".data", ".digest", ".portable"])
def test_public_names_are_documented(package):
    """docs/reference/api.md names everything public."""
    page = read("docs/reference/api.md")
    names = import_module(f"samebits{package}").__all__
    missing = [name for name in names if not re.search(rf"samebits[\w.]*[.]{name}\b", page)]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_can_be_read(page):
    """Prose is wrapped; rows of tables, code and the specifications are as long as they have to be."""
    lines = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    longest = max((line for line in lines.splitlines() if not line.startswith("|")), key=len)

    assert len(longest) <= 240, longest


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
