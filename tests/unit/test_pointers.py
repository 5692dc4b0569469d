"""Where an error message leads to."""

import sys

import pytest

from samebits import errors


@pytest.fixture
def metadata(tmp_path, monkeypatch):
    """Write the metadata of an installed package that comes before every other one."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(*lines: str) -> None:
        folder = tmp_path / "samebits-9.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("\n".join(("Metadata-Version: 2.4", "Name: samebits", *lines, "")))

    return write


def test_it_is_the_site_where_its_address_is_known(metadata):
    metadata("Project-URL: Source, https://a.example", "Project-URL: Documentation, https://b.example/9/")

    assert errors.documentation_address() == "https://b.example/9"
    assert errors.pointer("usage") == (
        "see https://b.example/9/reference/messages.html#usage, or: samebits explain usage"
    )


def test_it_is_the_page_in_a_checkout(metadata):
    metadata("Project-URL: Source, https://a.example")

    assert errors.pointer("usage") == "see docs/reference/messages.md#usage, or: samebits explain usage"


def test_it_is_the_command_where_there_is_no_page(metadata, tmp_path, monkeypatch):
    metadata()
    monkeypatch.setattr(errors, "_CHECKOUT", str(tmp_path))

    assert errors.pointer("usage") == "see: samebits explain usage"


def test_a_package_that_is_not_installed_has_no_address(monkeypatch):
    monkeypatch.setattr(sys, "path", [])

    assert errors.documentation_address() == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("see: samebits explain usage", True),
        ("see docs/reference/messages.md#a-b, or: samebits explain a-b", True),
        ("see https://b.example/9/reference/messages.html#usage, or: samebits explain usage", True),
        ("seed: samebits explain usage", False),
        ("see: samebits explain usage, please", False),
    ],
)
def test_a_pointer_is_known_again(line, expected):
    assert errors.is_pointer(line) is expected
