"""What a script imports, found without running anything."""

import pytest

from samebits.commands.doctor.imports import FLEX_ATTENTION, imported_packages, is_parsed, started_file


def write(folder, **files):
    """Write modules; `__` in a name stands for a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "train.py"


def test_own_modules_are_followed(tmp_path):
    """Modules and packages beside the script, also in cycles; nothing is run."""
    script = write(
        tmp_path,
        train="import torch.nn as nn\nfrom pack.data import load\nimport helper\nraise SystemExit",
        helper="def f():\n    import lightning, train",
        pack__init="",
        pack__data="from . import augment\nfrom .deep.nested import x",
        pack__augment="from albumentations.core import Compose",
        pack__deep__nested="from ... import cv2\nimport accelerate",
    )
    (tmp_path / "pack" / "init.py").rename(tmp_path / "pack" / "__init__.py")

    found = imported_packages(script, tmp_path)

    assert {"torch", "lightning", "albumentations", "accelerate"} <= found
    assert found.isdisjoint({"helper", "pack", "train"})


@pytest.mark.parametrize(
    ("text", "is_flex"),
    [
        ("from torch.nn.attention.flex_attention import flex_attention", True),
        ("import torch.nn.attention.flex_attention as flex", True),
        ("from torch.nn.attention import flex_attention", True),
        ("from torch.nn.attention import sdpa_kernel", False),
        ("import torch", False),
    ],
)
def test_flex_attention_has_a_name_of_its_own(tmp_path, text, is_flex):
    """Also in a module beside the script."""
    script = write(tmp_path, train="import model", model=text)
    assert imported_packages(script, tmp_path) == {"torch", *([FLEX_ATTENTION] if is_flex else [])}


@pytest.mark.parametrize("text", ["import (", "\0", "é" * 3 + "\nimport torch )"])
def test_what_cannot_be_parsed_imports_nothing(tmp_path, text):
    """A broken module is no reason to fail."""
    script = write(tmp_path, train="import broken, torch", broken=text)

    assert imported_packages(script, tmp_path) == {"torch"}
    assert imported_packages(tmp_path / "missing.py", tmp_path) == frozenset()


def test_a_script_without_source_is_told_from_one_without_imports(tmp_path):
    write(tmp_path, empty="", broken="import (")
    assert is_parsed(tmp_path / "empty.py")
    assert not is_parsed(tmp_path / "broken.py")
    assert not is_parsed(tmp_path / "missing.py")


def test_entry(tmp_path):
    """A script, a folder, a module, a package; a module that is installed is not beside us."""
    write(tmp_path, pack__mod="", pack__sub__init="", app__init="")
    (tmp_path / "pack" / "sub" / "init.py").rename(tmp_path / "pack" / "sub" / "__main__.py")

    assert started_file("pack/mod.py", None, tmp_path) == (tmp_path / "pack" / "mod.py", tmp_path / "pack")
    assert started_file("pack/sub", None, tmp_path) == (
        tmp_path / "pack" / "sub" / "__main__.py",
        tmp_path / "pack" / "sub",
    )
    assert started_file(None, "pack.mod", tmp_path) == (tmp_path / "pack" / "mod.py", tmp_path)
    assert started_file(None, "pack.sub", tmp_path) == (tmp_path / "pack" / "sub" / "__main__.py", tmp_path)
    assert started_file(None, "json.tool", tmp_path) == (None, tmp_path)


def test_entry_follows_a_link(tmp_path):
    """Python looks for modules beside the file itself."""
    write(tmp_path / "real", train="")
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "train.py")

    assert started_file("link.py", None, tmp_path) == (tmp_path / "real" / "train.py", tmp_path / "real")
