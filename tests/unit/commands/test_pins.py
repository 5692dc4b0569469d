"""How the packages of a record are pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from samebits.commands.pins import Gap, pins_of

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def pinned(**packages: dict[str, Any]) -> Any:
    """Return the pins of packages that the run imported."""
    common = {"imported": True, "contents": "a" * 32}
    rows = {name.replace("_", "-"): {**common, **package} for name, package in packages.items()}
    return pins_of({"distributions": rows})


@pytest.mark.parametrize(
    ("version", "index"),
    [
        ("2.13.0+cpu", "whl/cpu"),
        ("2.13.0+cu130", "whl/cu130"),
        ("2.9.1+rocm6.4", "whl/rocm6.4"),
        ("2.14.0.dev20261101+cu126", "whl/nightly/cu126"),
    ],
)
def test_a_build_of_torch_has_the_index_that_has_it(version: str, index: str) -> None:
    pins = pinned(torch={"version": version}, numpy={"version": "2.4.0"})
    assert pins.requirements == (
        f"--extra-index-url https://download.pytorch.org/{index}",
        "numpy==2.4.0",
        f"torch=={version}",
    )
    assert pins.constraints == ("numpy==2.4.0", f"torch=={version}")
    assert pins.unlike == ()


def test_a_build_that_no_index_has_is_told() -> None:
    pins = pinned(
        torch={"version": "2.6.0a0+df5bbc09d1.nv24.12"}, flash_attn={"version": "2.6.3+cu123torch2.4"}
    )
    assert "--extra-index-url" not in "".join(pins.requirements)
    assert [(each.name, each.gap) for each in pins.unlike] == [
        ("flash-attn", Gap.BUILD),
        ("torch", Gap.BUILD),
    ]


def test_what_was_not_imported_is_a_constraint() -> None:
    pins = pinned(numpy={"version": "2.4.0", "imported": False})
    assert (pins.requirements, pins.constraints) == ((), ("numpy==2.4.0",))


def test_an_address_is_pinned_to_its_commit_or_digest() -> None:
    pins = pinned(
        a={
            "version": "1.0",
            "origin": {"kind": "repository", "at": "git+https://example.org/a.git", "commit": COMMIT},
        },
        b={
            "version": "1.0",
            "origin": {
                "kind": "archive",
                "at": "https://example.org/b-1.0.zip",
                "sha256": "ab" * 32,
                "subdirectory": "x",
            },
        },
    )
    assert pins.requirements == (
        f"a @ git+https://example.org/a.git@{COMMIT}",
        f"b @ https://example.org/b-1.0.zip#sha256={'ab' * 32}&subdirectory=x",
    )
    assert (pins.constraints, pins.unlike, pins.needs_git) == ((), (), True)


@pytest.mark.parametrize(
    ("origin", "gap"),
    [
        ({"kind": "repository", "at": "git+https://***@example.org/a.git", "commit": COMMIT}, Gap.ADDRESS),
        ({"kind": "repository", "at": "git+ext::sh -c true", "commit": COMMIT}, Gap.ADDRESS),
        ({"kind": "repository", "at": "git+https://x.org/a\n-r /etc/passwd", "commit": COMMIT}, Gap.ADDRESS),
        ({"kind": "repository", "at": "git+https://x.org/a", "commit": "main ; true"}, Gap.ADDRESS),
        ({"kind": "repository", "at": "git+https://x.org/a"}, Gap.ADDRESS),
        ({"kind": "archive", "at": "a-1.0-py3-none-any.whl"}, Gap.FILE),
        ({"kind": "conda"}, Gap.CONDA),
    ],
)
def test_what_cannot_be_installed_as_it_was_is_pinned_by_version(origin: dict[str, str], gap: Gap) -> None:
    pins = pinned(a={"version": "1.0", "origin": origin})
    assert pins.requirements == ("a==1.0",)
    assert [each.gap for each in pins.unlike] == [gap]


@pytest.mark.parametrize("folder", [".", "packages/a b", "~/elsewhere", "/opt/a", "../a", "a\nb"])
def test_only_a_folder_of_the_repository_is_installed_from(folder: str) -> None:
    pins = pinned(a={"version": "1.0", "origin": {"kind": "editable", "at": folder}})
    assert (pins.requirements, pins.constraints) == ((), ())
    if folder in (".", "packages/a b"):
        assert pins.from_code[0].startswith("-e ")
        assert "./" in pins.from_code[0]
        assert pins.unlike == ()
    else:
        assert pins.from_code == ()
        assert [(each.gap, each.at) for each in pins.unlike] == [(Gap.FOLDER, folder)]


def test_a_folder_without_a_project_is_not_installed_from(tmp_path: Path) -> None:
    """Git ignores it, or it is of a submodule, whose folder is empty."""
    facts = {
        "distributions": {
            "a": {"version": "1.0", "imported": True, "origin": {"kind": "editable", "at": "packages/a"}}
        }
    }
    (tmp_path / "packages/a").mkdir(parents=True)
    pins = pins_of(facts, tmp_path)
    assert (pins.from_code, [each.gap for each in pins.unlike]) == ((), [Gap.FOLDER])
    (tmp_path / "packages/a/setup.py").touch()
    pins = pins_of(facts, tmp_path)
    assert (pins.from_code, pins.unlike) == (("-e ./packages/a",), ())


def test_a_strangers_record_adds_no_option() -> None:
    rows = {"a": {"version": "1 --index-url http://x"}, "--pre": {"version": "1"}, "b": {"version": "1+c d"}}
    assert pinned(**rows).requirements == ()


def test_samebits_is_apart() -> None:
    assert pinned(samebits={"version": "1.2"}).samebits == "1.2"
    local = pinned(samebits={"version": "1.2", "origin": {"kind": "editable", "at": "."}})
    assert (local.samebits, local.requirements, local.constraints, local.unlike) == ("", (), (), ())


def test_edited_files_are_told() -> None:
    pins = pinned(a={"version": "1.0", "edited": ["a.py 00"]})
    assert [each.gap for each in pins.unlike] == [Gap.EDITED]
