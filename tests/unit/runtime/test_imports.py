"""`PostImport` calls back after a module's body and leaves no trace in the import."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import time
import traceback
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from samebits._runtime.imports import PostImport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("watched_a", "watched_b", "watched_pkg", "watched_bad", "watched_spec", "watched_twin")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules on `sys.path`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "watched_a.py").write_text("import watched_b\nVALUE = 1\n")
    (tmp_path / "watched_b.py").write_text("VALUE = 2\n")
    (tmp_path / "watched_bad.py").write_text("def f():\n    1 / 0\nf()\n")
    (tmp_path / "watched_spec.py").write_text(
        "import copy\nSEEN = copy.copy(vars())\nSEEN['repr'] = repr(__spec__)\n"
    )
    package = tmp_path / "watched_pkg"
    package.mkdir()
    (package / "__init__.py").write_text("from watched_pkg import inner\nFINISHED = True\n")
    (package / "inner.py").write_text("VALUE = 3\n")
    yield tmp_path
    for name in list(sys.modules):
        if name.partition(".")[0] in NAMES:
            del sys.modules[name]


@pytest.fixture
def hook(modules: Path) -> Iterator[PostImport]:
    """An installed hook, removed afterwards."""
    before = list(sys.meta_path)
    hook = PostImport()
    hook.install()
    yield hook
    hook.remove()
    assert sys.meta_path == before


def test_runs_right_after_the_body(hook: PostImport) -> None:
    """The callback gets the complete module, before the importer goes on, and once."""
    seen: list[tuple[str, int]] = []
    hook.on_import("watched_b", lambda module: seen.append((module.__name__, module.VALUE)))
    hook.on_import("watched_a", lambda module: seen.append((module.__name__, module.VALUE)))
    importlib.import_module("watched_a")
    importlib.import_module("watched_b")
    assert seen == [("watched_b", 2), ("watched_a", 1)]


def test_module_is_as_without_us(hook: PostImport) -> None:
    """Spec and loader are plain, during the body (apart from the spec's class) and after it."""
    hook.on_import("watched_spec", lambda _: None)
    module = importlib.import_module("watched_spec")
    assert type(module.__spec__) is ModuleSpec
    assert type(module.__loader__) is SourceFileLoader
    assert module.__spec__.loader is module.__loader__
    assert module.SEEN["__loader__"] is module.__loader__
    assert module.SEEN["repr"] == repr(module.__spec__)
    hook.remove()
    del sys.modules["watched_spec"]
    plain = importlib.import_module("watched_spec")
    assert vars(plain.__spec__).keys() == vars(module.__spec__).keys()
    assert module.__spec__._initializing is False


def test_already_imported_runs_at_once(hook: PostImport) -> None:
    """No import is needed."""
    module = importlib.import_module("watched_b")
    seen: list[ModuleType] = []
    hook.on_import("watched_b", seen.append)
    assert seen == [module]


def test_registered_while_the_body_runs(hook: PostImport) -> None:
    """A callback that comes too late for the finder still waits for the end of the body."""
    seen: list[bool] = []

    def register(_: ModuleType) -> None:
        hook.on_import("watched_pkg", lambda package: seen.append(package.FINISHED))
        assert seen == []

    hook.on_import("watched_pkg.inner", register)
    importlib.import_module("watched_pkg")
    assert seen == [True]


def test_submodule(hook: PostImport) -> None:
    """Submodules are watched by their full names."""
    seen: list[int] = []
    hook.on_import("watched_pkg.inner", lambda module: seen.append(module.VALUE))
    assert importlib.import_module("watched_pkg").inner.VALUE == 3
    assert seen == [3]


def test_nested_registration_and_import(hook: PostImport) -> None:
    """A callback may register others, import the module itself, and import more."""
    seen: list[str] = []

    def first(module: ModuleType) -> None:
        hook.on_import("watched_a", lambda _: seen.append("at once"))
        hook.on_import("watched_pkg", lambda _: seen.append("package"))
        assert importlib.import_module("watched_a") is module
        importlib.import_module("watched_pkg")

    hook.on_import("watched_a", first)
    hook.on_import("watched_a", lambda _: seen.append("second"))
    importlib.import_module("watched_a")
    assert sorted(seen) == ["at once", "package", "second"]


def test_failed_import_is_untouched(hook: PostImport) -> None:
    """The traceback has no frame of ours or of the import system; nothing is called."""
    seen: list[ModuleType] = []
    hook.on_import("watched_bad", seen.append)
    with pytest.raises(ZeroDivisionError) as caught:
        import watched_bad  # noqa: F401
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames == ["test_failed_import_is_untouched", "<module>", "f"]
    assert "watched_bad" not in sys.modules
    assert seen == []


def test_second_attempt(hook: PostImport, modules: Path) -> None:
    """A callback survives a failed import."""
    seen: list[int] = []
    hook.on_import("watched_bad", lambda module: seen.append(module.VALUE))
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("watched_bad")
    (modules / "watched_bad.py").write_text("VALUE = 'mended'\n")
    importlib.invalidate_caches()
    importlib.import_module("watched_bad")
    assert seen == ["mended"]


def test_module_that_does_not_exist(hook: PostImport) -> None:
    """The error is Python's."""
    hook.on_import("watched_none", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'watched_none'$"):
        importlib.import_module("watched_none")
    assert importlib.util.find_spec("watched_none") is None


def test_what_a_callback_raises_comes_out(hook: PostImport) -> None:
    """And the module stays imported, complete."""
    hook.on_import("watched_b", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("watched_b")
    assert sys.modules["watched_b"].VALUE == 2
    assert sys.modules["watched_b"].__spec__._initializing is False


def test_looking_for_a_spec_does_not_call_back(hook: PostImport) -> None:
    """`find_spec`, by which libraries ask what is installed, imports nothing."""
    seen: list[ModuleType] = []
    hook.on_import("watched_b", seen.append)
    assert importlib.util.find_spec("watched_b") is not None
    assert seen == []
    importlib.import_module("watched_b")
    assert len(seen) == 1


def test_imported_anew(hook: PostImport) -> None:
    """A module that was forgotten and imported again is not called back for again."""
    seen: list[ModuleType] = []
    hook.on_import("watched_b", seen.append)
    importlib.import_module("watched_b")
    del sys.modules["watched_b"]
    importlib.import_module("watched_b")
    assert len(seen) == 1


def test_callback_finds_samebits_behind_a_shadow(hook: PostImport, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a module of that name in the script's folder, callbacks still import from this package."""
    theirs = ModuleType("samebits")
    ours = sys.modules["samebits"]
    seen: list[object] = []
    hook.on_import("watched_b", lambda _: seen.append(importlib.import_module("samebits")))
    monkeypatch.setitem(sys.modules, "samebits", theirs)
    importlib.import_module("watched_b")
    assert seen == [ours]
    assert sys.modules["samebits"] is theirs


def test_reload_does_not_call_back(hook: PostImport) -> None:
    """Once is once."""
    seen: list[ModuleType] = []
    hook.on_import("watched_b", seen.append)
    module = importlib.import_module("watched_b")
    assert importlib.reload(module) is module
    assert seen == [module]


def test_threads_wait_for_the_callback(hook: PostImport, modules: Path) -> None:
    """No thread gets the module before the callback has run, be it early or late."""
    (modules / "watched_b.py").write_text("import time\ntime.sleep(0.05)\nPATCHED = False\n")
    seen: list[bool] = []

    def use() -> None:
        import watched_b

        seen.append(watched_b.PATCHED)

    threads = [threading.Thread(target=use) for _ in range(6)]

    def patch(module: ModuleType) -> None:
        for thread in threads[3:]:
            thread.start()
        time.sleep(0.05)
        module.PATCHED = True  # type: ignore[attr-defined]

    hook.on_import("watched_b", patch)
    for thread in threads[:3]:
        thread.start()
    for thread in threads[:3]:
        thread.join()
    for thread in threads[3:]:
        thread.join()
    assert seen == [True] * 6


def test_extension_module(hook: PostImport) -> None:
    """A module in C is watched like one in Python."""
    saved = sys.modules.pop("_queue", None)
    seen: list[str] = []
    hook.on_import("_queue", lambda module: seen.append(module.SimpleQueue.__name__))
    importlib.import_module("_queue")
    if saved is not None:
        sys.modules["_queue"] = saved
    assert seen == ["SimpleQueue"]


def test_remove_forgets(hook: PostImport) -> None:
    """After `remove` nothing is called, and imports are as before."""
    seen: list[ModuleType] = []
    hook.on_import("watched_b", seen.append)
    hook.remove()
    assert hook not in sys.meta_path
    importlib.import_module("watched_b")
    assert seen == []
    del sys.modules["watched_b"]
    hook.install()
    importlib.import_module("watched_b")
    assert seen == []


def test_two_hooks(hook: PostImport) -> None:
    """Two recordings at once both see the import."""
    other = PostImport()
    other.install()
    seen: list[str] = []
    hook.on_import("watched_b", lambda _: seen.append("one"))
    other.on_import("watched_b", lambda _: seen.append("two"))
    importlib.import_module("watched_b")
    other.remove()
    assert sorted(seen) == ["one", "two"]
