"""A cell of a notebook: run as IPython runs it, as often as needed, and named as IPython names it."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from IPython.core.interactiveshell import ExecutionResult

from samebits._runtime.frames import Site
from samebits.integrations._hidden_output import hidden_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# `<ipython-input-3-0123456789ab>`, and Colab's `/tmp/ipython-input-3-0123456789ab.py`
_NUMBERED = re.compile(r"ipython-input-(\d+)-")


@dataclass(frozen=True)
class CellRun:
    """How one run of a cell ended.

    Args:
        error: what it raised; None if nothing.
        values: what its last expression gave, if it has one that shows something.
    """

    error: BaseException | None = None
    values: tuple[Any, ...] = ()

    def raise_error(self) -> None:
        """Raise what it raised, so that the context that it ran in learns of it."""
        if self.error is not None:
            raise self.error


class Cell:
    """The rest of a cell that begins with a cell magic.

    Args:
        shell: IPython's.
        body: the lines after the first.
    """

    def __init__(self, shell: Any, body: str) -> None:
        self._shell = shell
        self.body = body
        self.number = int(shell.displayhook.prompt_count)
        self._head = _lines_before(shell, body)
        self._outer = shell.displayhook.exec_result
        self._code: ast.Module | None = None
        self._file = ""

    @property
    def name(self) -> str:
        """What IPython calls it in a traceback."""
        return f"Cell In[{self.number}]"

    @property
    def lines(self) -> tuple[str, ...]:
        """Its lines, the magic's too, so that they are numbered as in the notebook."""
        return (*self._head, *self.body.splitlines())

    def awaits(self) -> bool:
        """Tell whether it awaits something at its top level."""
        try:
            code = self._shell.transform_cell(self.body)
        except SyntaxError:
            return False
        return bool(self._shell.should_run_async(self.body, transformed_cell=code))

    async def run(self, *, shown: bool) -> CellRun:
        """Run it once in the notebook's variables.

        Args:
            shown: its output and its error are the cell's; otherwise nobody sees them.
        """
        if self._code is None and not self._compile():
            return CellRun(self._outer.error_before_exec if self._outer is not None else None)
        result: Any = cast("Any", ExecutionResult)(None)
        values: list[Any] = []
        with contextlib.ExitStack() as stack:
            if not shown:
                stack.enter_context(hidden_output())
                stack.enter_context(self._errors_hidden())
            stack.enter_context(_displayed(values))
            try:
                await self._shell.run_ast_nodes(
                    list(self._code.body) if self._code is not None else [],
                    self._file,
                    interactivity=self._interactivity(),
                    compiler=self._shell.compile,
                    result=result,
                )
            finally:
                self._shell.events.trigger("post_execute")  # shows the figures that it has drawn
        error = result.error_before_exec or result.error_in_exec
        if error is not None and shown:
            self._fail(error)
        return CellRun(error, tuple(values))

    def sites(self) -> dict[str, Site]:
        """Return the last line of the cell that binds a variable, for each."""
        lines: dict[str, int] = {}
        for node in ast.walk(self._code) if self._code is not None else ():
            for name in _bound(node):
                lines[name] = max(lines.get(name, 0), getattr(node, "lineno", 0))
        return {name: Site(self.name, line, "<module>") for name, line in lines.items()}

    def _compile(self) -> bool:
        """Parse it; show an error as IPython does, and return False."""
        shell = self._shell
        try:
            body = shell.transform_cell(self.body)
        except SyntaxError as error:
            shell.showtraceback()
            self._fail(error, before=True)
            return False
        blank = self.body[: -len(self.body.lstrip())].count("\n")  # IPython takes these lines away
        text = "".join(f"# {line}\n" for line in self._head) + "\n" * blank + body
        self._file = shell.compile.cache(text, self.number, raw_code=self.body)
        try:
            self._code = shell.transform_ast(shell.compile.ast_parse(text, filename=self._file))
        except (SyntaxError, ValueError, OverflowError, MemoryError) as error:
            shell.showsyntaxerror()
            self._fail(error, before=True)
            return False
        return True

    def _interactivity(self) -> str:
        ends_quietly = self.body.rstrip().endswith(";")
        return "none" if ends_quietly else str(self._shell.ast_node_interactivity)

    def _fail(self, error: BaseException, *, before: bool = False) -> None:
        """Make the whole cell one that failed, as the notebook sees it."""
        if self._outer is not None:
            setattr(self._outer, "error_before_exec" if before else "error_in_exec", error)

    @contextlib.contextmanager
    def _errors_hidden(self) -> Iterator[None]:
        names = ("showtraceback", "showsyntaxerror")
        for name in names:
            setattr(self._shell, name, lambda *_, **__: None)
        try:
            yield
        finally:
            for name in names:
                delattr(self._shell, name)


@contextlib.contextmanager
def _displayed(values: list[Any]) -> Iterator[None]:
    """Collect the values that are displayed as the results of expressions."""
    show = sys.displayhook

    def collect(value: Any) -> None:
        if value is not None:
            values.append(value)
        show(value)

    sys.displayhook = collect
    try:
        yield
    finally:
        sys.displayhook = show


def _bound(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return (node.id,)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (node.name,)
    return ()


def _lines_before(shell: Any, body: str) -> tuple[str, ...]:
    """Return the lines of the notebook's cell that come before its body."""
    typed = str(shell.history_manager.input_hist_raw[-1])
    start = typed.rfind(body.rstrip("\n")) if body.strip() else -1
    return tuple(typed[:start].splitlines()) if start > 0 else ("%%samebits",)


def cell_name(shell: Any, file: str) -> str:
    """Return what IPython calls a cell in tracebacks; empty for a file that is none.

    Args:
        shell: IPython's.
        file: name of the code of a cell: IPython's, ipykernel's (`/tmp/ipykernel_7/123.py`) or Colab's.
    """
    known = getattr(shell.compile, "format_code_name", lambda _: None)(file)  # since IPython 8
    if known is not None:
        return " ".join(known)
    match = _NUMBERED.search(file)
    return f"Cell In[{match[1]}]" if match else ""


def cell_texts(shell: Any, cell: Cell) -> Mapping[str, tuple[str, ...]]:
    """Return the lines of all cells that ran, by what IPython calls them.

    Args:
        shell: IPython's.
        cell: the present one.
    """
    texts: dict[str, tuple[str, ...]] = {}
    for file, entry in list(linecache.cache.items()):
        name = cell_name(shell, file)
        if name and len(entry) > 2:
            texts[name] = tuple(entry[2])
    return {**texts, cell.name: cell.lines}
