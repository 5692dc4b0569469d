"""`%load_ext samebits`: cell magics that verify a cell, and run one under control.

`%%samebits verify` runs the cell again from the state in which it began, and compares the runs bit for bit.
`%%samebits run --seed 3` runs it once under control.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from samebits._runtime.frames import PROGRAM
from samebits.errors import SamebitsError, pointer
from samebits.integrations._cells import Cell, cell_name, cell_texts
from samebits.integrations._magic_options import Help, RunRequest, parse
from samebits.integrations._repeated_cell import RepeatedCell
from samebits.report.cells import as_in_tracebacks, control_line, verdict_on_cell, warning_line
from samebits.verification.repeated_calls import controlled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits._runtime.frames import Site
    from samebits.determinism.activation import ActivationReport
    from samebits.integrations._cells import CellRun
    from samebits.verification.repeated_calls import CallsRequest

_MAGIC = "samebits"


@magics_class
class SamebitsMagics(Magics):
    """The magic `%%samebits`.

    Args:
        shell: IPython's.
    """

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._said: set[str] = set()

    @line_cell_magic
    def samebits(self, line: str, cell: str | None = None) -> None:
        """Verify a cell, or run it under control: `%samebits --help`."""
        work = self._work(line, cell, awaited=False)
        with contextlib.suppress(StopIteration):
            work.send(None)  # it has nothing to wait for

    async def awaited(self, line: str, cell: str) -> None:
        """Do the same for a cell that awaits something at its top level."""
        await self._work(line, cell, awaited=True)

    async def _work(self, line: str, text: str | None, *, awaited: bool) -> None:
        with _errors_in_one_line():
            request = parse(line)
            if isinstance(request, Help):
                print(request.text.rstrip())
                return
            if text is None:
                message = f"`%samebits {line}` has no cell; expected `%%samebits {line}` in its first line"
                raise SamebitsError(message, slug="usage")
            cell = Cell(self.shell, text)
            if cell.awaits() and not awaited:
                message = "the cell awaits at its top level; expected %%samebits as its first magic"
                raise SamebitsError(message, slug="usage")
            if isinstance(request, RunRequest):
                await self._run(request, cell)
            else:
                await self._verify(request, cell)

    def _warn(self, text: str, site: Site | None = None) -> None:
        """Say something once."""
        if text not in self._said:
            self._said.add(text)
            print(warning_line(text, site), file=sys.stderr)

    async def _run(self, request: RunRequest, cell: Cell) -> None:
        run: CellRun | None = None
        report: ActivationReport | None = None
        try:
            with controlled(request.control, self._warn) as active:
                run = await cell.run(shown=True)
                report = None if active is None else active.report
                run.raise_error()  # control may explain it
        except BaseException as error:
            if run is None or run.error is None:
                raise
            if error is not run.error:
                print(warning_line(str(error)), file=sys.stderr)
            return
        print(control_line(request.control, report))

    async def _verify(self, request: CallsRequest, cell: Cell) -> None:
        shell: Any = self.shell
        verified = await RepeatedCell(shell.user_ns, cell).verify(replace(request, warn=self._warn))
        if verified is not None:
            texts = cell_texts(shell, cell)
            text = verdict_on_cell(
                verified.result,
                verified.not_restored,
                texts,
                state_only=request.state_only,
                records=verified.records,
            )
            print(text)


@contextlib.contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Show errors of samebits without a traceback, and an interruption of its own work in one line."""
    try:
        yield
    except SamebitsError as error:
        raise UsageError(as_in_tracebacks(f"{error} ({pointer(error.slug)})")) from None
    except KeyboardInterrupt:
        interruption = KeyboardInterrupt("samebits verify was interrupted; the first run of the cell counts")
        # IPython asks an exception for its traceback.
        interruption._render_traceback_ = lambda: [f"KeyboardInterrupt: {interruption}"]  # type: ignore[attr-defined]
        raise interruption from None


def _with_await(lines: list[str], shell: Any) -> list[str]:
    """Turn a cell with the magic into one that awaits, if the rest of it does: a transformation of IPython.

    Args:
        lines: of the cell as Python code.
        shell: IPython's.
    """
    text = "".join(lines)
    if not text.startswith(f"get_ipython().run_cell_magic({_MAGIC!r}"):
        return lines
    line, body = (ast.literal_eval(word) for word in ast.parse(text).body[0].value.args[1:])  # type: ignore[attr-defined]
    if not Cell(shell, body).awaits():
        return lines
    owner = f"get_ipython().magics_manager.registry[{SamebitsMagics.__name__!r}]"
    return [f"await {owner}.awaited({line!r}, {body!r})\n"]


def load_ipython_extension(shell: Any) -> None:
    """Add the magic to a shell: `%load_ext samebits`.

    Args:
        shell: IPython's.
    """
    if SamebitsMagics.__name__ in shell.magics_manager.registry:
        return
    shell.register_magics(SamebitsMagics)
    shell.input_transformers_post.append(_AwaitTransformer(shell))
    PROGRAM.cell_name = partial(cell_name, shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magic away: `%unload_ext samebits`.

    Args:
        shell: IPython's.
    """
    shell.input_transformers_post[:] = [
        each for each in shell.input_transformers_post if not isinstance(each, _AwaitTransformer)
    ]
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_MAGIC, None)
    shell.magics_manager.registry.pop(SamebitsMagics.__name__, None)
    PROGRAM.cell_name = lambda _: ""


class _AwaitTransformer:
    """`_with_await` for one shell.

    Args:
        shell: IPython's.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        return _with_await(lines, self._shell)
