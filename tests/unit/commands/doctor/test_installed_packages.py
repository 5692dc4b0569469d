"""Installed packages are read from their metadata, and a damaged one does not hide the others."""

import pytest

from samebits.commands.doctor.probe import installed_packages


def install(folder, name, metadata):
    """A distribution with that metadata; None leaves the file out."""
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir()
    if metadata is not None:
        (place / "METADATA").write_bytes(metadata)
    return place


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only folder of the path: distributions in it are all there are."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    return tmp_path


def test_names_are_normalised(folder):
    """As pip writes them."""
    install(folder, "good", b"Name: Good_Pack.age\nVersion: 1.5\n")

    assert installed_packages() == {"good-pack-age": "1.5"}


@pytest.mark.parametrize(
    "damage",
    [None, b"", b"Name: bro\xff\xfeken\nVersion: 1\n", b"Version: 1\n"],
    ids=["no file", "empty", "not UTF-8", "no name"],
)
def test_damaged_metadata_hides_no_other_package(folder, damage):
    """Such a package is left out."""
    install(folder, "broken", damage)
    install(folder, "good", b"Name: good\nVersion: 2.0\n")

    assert installed_packages() == {"good": "2.0"}


def test_metadata_that_cannot_be_opened_hides_no_other_package(folder):
    """A link to itself fails with an error of the system."""
    install(folder, "broken", None).joinpath("METADATA").symlink_to("METADATA")
    install(folder, "good", b"Name: good\nVersion: 2.0\n")

    assert installed_packages() == {"good": "2.0"}
