"""Code and data of a run, by their contents; what was read before is not read again."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest

from samebits._text.caches import cache_folder
from samebits.environment import files
from samebits.environment._cache import FileCache, stamp_of
from samebits.environment.files import FileDigest, digest_data, sha256_of
from samebits.environment.loaded_code import LoadedCode
from samebits.environment.unread import Unread, WhyUnread, unread_in


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def data_of(tmp_path: Path, contents: dict[str, str]) -> list[str]:
    paths = []
    for name, text in contents.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_600_000_000, 1_600_000_000))
        paths.append(str(path))
    return paths


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_file_is_known_by_its_contents(tmp_path: Path) -> None:
    (path,) = data_of(tmp_path, {"a.csv": "1,2"})
    facts = digest_data([path], str(tmp_path))

    assert facts.files == {"data/a.csv": FileDigest(sha("1,2"), 3)}
    assert facts.unread == {}
    assert sha256_of(str(tmp_path)) is None
    assert sha256_of(str(tmp_path / "missing")) is None


def test_names_say_nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = data_of(tmp_path, {"a.csv": "1"})
    monkeypatch.setenv("HOME", str(tmp_path))

    assert list(digest_data([path], str(tmp_path / "data")).files) == ["a.csv"]
    assert list(digest_data([path], "/elsewhere").files) == ["~/data/a.csv"]


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it changes: its size, a time stamp, or the file under that name."""
    (path,) = data_of(tmp_path, {"a.csv": "1"})
    digest_data([path], str(tmp_path))
    monkeypatch.setattr(files, "_hashed", lambda *_: "read again")

    assert digest_data([path], str(tmp_path)).files["data/a.csv"].sha256 == sha("1")
    os.utime(path, (1_600_000_000, 1_600_000_001))
    assert digest_data([path], str(tmp_path)).files["data/a.csv"].sha256 == "read again"


def test_a_file_that_was_just_written_is_not_trusted_to_the_cache(tmp_path: Path) -> None:
    """It may be written again with the same time stamp."""
    path = tmp_path / "a"
    path.write_text("1")
    soon = path.stat().st_mtime + 100
    os.utime(path, (soon, soon))
    digest_data([str(path)], str(tmp_path))

    assert FileCache("files").get(str(path), stamp_of(path.stat())) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "entries": [1]}', "1" * 100])
def test_a_damaged_cache_costs_time_only(tmp_path: Path, own_cache: Path, text: str) -> None:
    (path,) = data_of(tmp_path, {"a": "1"})
    own_cache.mkdir()
    (own_cache / "files.json").write_text(text)
    assert digest_data([path], str(tmp_path)).files["data/a"].sha256 == sha("1")
    (own_cache / "files.json").write_text(
        json.dumps({"format": 1, "entries": {path: [stamp_of(os.stat(path)), {"no": "digest"}]}})
    )
    assert digest_data([path], str(tmp_path)).files["data/a"].sha256 == sha("1")


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = data_of(tmp_path, {"a": "1"})
    own_cache.write_text("a file")
    assert digest_data([path], str(tmp_path)).files["data/a"].sha256 == sha("1")
    monkeypatch.delenv("SAMEBITS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    if sys.platform == "linux":
        assert cache_folder() == "/somewhere/samebits"


def test_many_files_become_few_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders, the deepest first; one changed byte changes the entry, and the order of reading does not."""
    monkeypatch.setattr(files, "_MOST_LISTED", 5)
    contents = {f"train/{kind}/{number}.png": f"{kind}{number}" for kind in "ab" for number in range(4)}
    paths = data_of(tmp_path, {**contents, "labels.csv": "x"})
    folder = str(tmp_path / "data")
    facts = digest_data(paths, folder)

    assert list(facts.files) == ["labels.csv", "train/a/", "train/b/"]
    assert (facts.files["train/a/"].count, facts.files["train/a/"].size) == (4, 8)
    assert digest_data(list(reversed(paths)), folder) == facts
    data_of(tmp_path, {"train/a/0.png": "A0"})
    assert digest_data(paths, folder).files["train/a/"].sha256 != facts.files["train/a/"].sha256
    assert digest_data(paths, folder).files["train/b/"] == facts.files["train/b/"]


def test_one_full_folder_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_LISTED", 3)
    paths = data_of(tmp_path, {str(number): "x" for number in range(9)})

    assert list(digest_data(paths, str(tmp_path / "data")).files) == ["./"]


def test_ctrl_c_stops_the_reading_and_names_the_rest(tmp_path: Path) -> None:
    paths = data_of(tmp_path, {"a": "1", "b": "22"})
    seen: list[tuple[int, int]] = []

    def interrupt(done: int, total: int) -> None:
        seen.append((done, total))
        if done > 1:
            raise KeyboardInterrupt

    facts = digest_data([*paths, str(tmp_path / "gone")], str(tmp_path), interrupt)
    assert list(facts.files) == ["data/a"]
    assert facts.unread == {"data/b": WhyUnread.SKIPPED, "gone": WhyUnread.GONE}
    assert seen == [(1, 3), (3, 3)]


def test_each_file_without_a_digest_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = data_of(tmp_path, {"a": "1", "denied": "1", "grows": "1"})
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    opened = open

    def refuse(path: str, *arguments: object, **named: object) -> object:
        if path.endswith("denied"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *arguments, **named)

    def grow(done: int, _total: int) -> None:
        if done == 2:
            Path(paths[2]).write_text("12")

    monkeypatch.setattr(files, "_open", refuse)
    facts = digest_data([*paths, str(tmp_path / "gone"), str(pipe)], str(tmp_path / "data"), grow)

    assert list(facts.files) == ["a"]
    assert {Path(name).name: why for name, why in facts.unread.items()} == {
        "denied": WhyUnread.DENIED,
        "grows": WhyUnread.CHANGED,
        "gone": WhyUnread.GONE,
        "pipe": WhyUnread.GONE,
    }


def test_of_many_files_without_a_digest_some_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MOST_LISTED", 2)
    facts = digest_data([str(tmp_path / str(number)) for number in range(5)], str(tmp_path))

    assert facts.unread == {"0": WhyUnread.GONE, "1": WhyUnread.GONE}
    assert facts.unlisted == {WhyUnread.GONE: 3}
    recorded = unread_in(json.loads(json.dumps(asdict(facts))))
    assert recorded == Unread(facts.unread, facts.unlisted)
    assert recorded.counts == {WhyUnread.GONE: 5}


@pytest.mark.parametrize("data", [None, 3, {"unread": 3, "unlisted": [1]}, {"unlisted": {"gone": "x"}}, {}])
def test_a_record_may_hold_anything(data: object) -> None:
    assert unread_in(data) == Unread()


def test_a_record_of_an_earlier_release_has_names_only() -> None:
    assert unread_in({"unread": ["a", "b"]}).counts == {WhyUnread.UNTOLD: 2}
    assert unread_in({"unread": {"a": "of the future"}}).files == {"a": WhyUnread.UNTOLD}


def imported(monkeypatch: pytest.MonkeyPatch, path: Path) -> Path:
    """A module of that file, which is made."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    path.parent.mkdir(exist_ok=True)
    path.write_text("x = 1")
    monkeypatch.setitem(sys.modules, path.stem, module)
    return path


def test_the_code_is_the_script_and_the_users_own_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the standard library, not what is installed, not samebits."""
    imported(monkeypatch, tmp_path / "own_module.py")
    code = LoadedCode().collect()

    assert code["own_module"] == FileDigest(sha("x = 1"), 5)
    assert not [name for name in code if name.partition(".")[0] in ("samebits", "json", "pytest", "torch")]


def test_changed_code_is_named_but_for_temporary_files_that_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that generates a module takes it away when the interpreter ends."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    edited, gone, kept = (
        imported(monkeypatch, tmp_path / f"{name}.py") for name in ("edited", "gone", "kept")
    )
    generated, written = (
        imported(monkeypatch, tmp_path / "temporary" / f"{n}.py") for n in ("made", "again")
    )
    code = LoadedCode()
    assert {path.stem for path in (edited, gone, kept, generated, written)} <= set(code.collect())

    edited.write_text("x = 2")
    written.write_text("x = 3")
    gone.unlink()
    generated.unlink()
    assert set(code.changed()) == {"edited", "gone", "again"}
