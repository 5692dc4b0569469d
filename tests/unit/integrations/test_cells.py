"""What a notebook calls its cells, from the names that their code has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ipykernel.compiler import XCachingCompiler
from IPython.core.compilerop import CachingCompiler

from samebits._runtime.frames import PROGRAM, USER, FrameRanks, site_of
from samebits.integrations._cells import cell_name, cell_texts


@pytest.mark.parametrize("compiler", [CachingCompiler, XCachingCompiler])
def test_cells_of_the_shell_and_the_kernel(compiler):
    """`<ipython-input-3-…>` in the terminal, `/tmp/ipykernel_7/123.py` in a notebook and in VS Code."""
    shell = SimpleNamespace(compile=compiler())
    file = shell.compile.cache("x = 1\ny = 2\n", 3)
    cell = SimpleNamespace(name="Cell In[4]", lines=("z",))

    assert cell_name(shell, file) == "Cell In[3]"
    assert cell_name(shell, __file__) == ""
    texts = cell_texts(shell, cell)
    assert [line.strip() for line in texts["Cell In[3]"]] == ["x = 1", "y = 2"]
    assert texts["Cell In[4]"] == ("z",)


@pytest.mark.parametrize(
    "file",
    [
        "<ipython-input-12-0123456789ab>",
        "/colab/ipython-input-12-0123456789ab.py",
    ],
)
def test_cells_of_older_shells(file):
    """Colab's IPython does not say what it calls a cell; the name of the code has its number."""
    assert cell_name(SimpleNamespace(compile=object()), file) == "Cell In[12]"


def test_sites_are_in_cells(monkeypatch):
    """Once a notebook says how; other files keep their paths."""
    monkeypatch.setattr(PROGRAM, "cell_name", lambda file: "Cell In[3]" if file == "<odd>" else "")
    code = compile("pass", "<odd>", "exec")

    assert site_of(code, 4).file == "Cell In[3]"
    assert FrameRanks().rank_of_file("<odd>") == USER
    assert FrameRanks().rank_of_file("<other>") != USER
    assert site_of(compile("pass", __file__, "exec"), 1).file == __file__
