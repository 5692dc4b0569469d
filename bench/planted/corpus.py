"""The planted corpus: scripts with one known nondeterminism each, and clean ones that look suspicious.

A script says in comments what is true of it:

    # planted: cause=wall-clock           the cause, one of CAUSES
    # planted: cause=unknown or=race      another answer that is also right
    # planted: cause=race in=pool.py      the fault sits in a module beside the script
    # clean: the clock is only printed    nothing differs, and why it looks as if it did
    # options: --runs 6                   how `samebits verify` must be called for the fault to show

The line where chance enters ends with `# <- planted`; where its value first becomes part of a tensor, if
that is another line, with `# <- enters`. Several lines may be marked when each is a fair answer.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
CUDA_SCRIPTS = Path(__file__).parent / "cuda"  # they need a GPU
CLEAN = "clean"
CAUSES = (
    "unseeded-torch",
    "unseeded-numpy",
    "unseeded-python",
    "os-entropy",
    "wall-clock",
    "hash-order",
    "id-order",
    "race",
    "nondeterministic-kernel",
    "uninitialized",
    "environment",
    "worker-order",
    "stream-order",
    "autotuning",
    "thread-count",
    "unknown",
)
PLANTED, ENTERS = "# <- planted", "# <- enters"
Line = tuple[str, int]


class HeaderError(ValueError):
    """A script whose comments do not say what is true of it."""


@dataclass(frozen=True)
class Script:
    """One script of the corpus and what is true of it."""

    path: Path
    causes: tuple[str, ...]  # the right answers; none for a clean script
    why: str  # why a clean script looks suspicious
    helper: Path | None
    options: tuple[str, ...]
    planted: frozenset[Line]  # (file name, line) where chance enters
    enters: frozenset[Line]  # where its value becomes part of a tensor

    @property
    def name(self) -> str:
        """The name in tables."""
        return self.path.stem

    @property
    def is_clean(self) -> bool:
        """Whether its runs must be identical."""
        return not self.causes

    @property
    def fingerprint(self) -> str:
        """Changes when a verdict on the script may: with its code, its lines, its options, not its marks."""
        files = [self.path, self.helper] if self.helper else [self.path]
        trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
        text = "".join(ast.dump(tree, include_attributes=True) for tree in trees)
        return hashlib.sha256((text + " ".join(self.options)).encode()).hexdigest()[:16]

    @property
    def cause(self) -> str:
        """The cause under which it is counted."""
        return self.causes[0] if self.causes else CLEAN


def statement_lines(tree: ast.AST, line: int) -> set[int]:
    """Lines of the smallest statement that holds that line; of a compound statement only its head."""
    best = {line}
    shortest = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if isinstance(body, list) else (node.end_lineno or node.lineno)
        if line > end:
            continue
        if shortest is None or end - node.lineno < shortest:
            shortest = end - node.lineno
            best = set(range(node.lineno, end + 1))
    return best


def marked(path: Path, marker: str) -> set[Line]:
    """Lines of that file, as (name, number), whose statement ends with that marker."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines: set[int] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.rstrip().endswith(marker):
            lines |= statement_lines(tree, number)
    return {(path.name, number) for number in lines}


def comment(text: str, key: str) -> str | None:
    """What follows `# key:` in the head of a script."""
    found = re.search(rf"^# {key}: (.+)$", text, flags=re.MULTILINE)
    return found.group(1).strip() if found else None


def fields(text: str) -> dict[str, str]:
    """`a=b c=d` as a dictionary.

    Raises:
        HeaderError: A word is not of that form.
    """
    pairs = [word.partition("=") for word in text.split()]
    if any(not (key and equals and value) for key, equals, value in pairs):
        raise HeaderError(f"expected words of the form key=value, found {text!r}")
    return {key: value for key, _, value in pairs}


def read_script(path: Path) -> Script:
    """Read the comments of one script.

    Raises:
        HeaderError: They are missing, say both or neither, or name an unknown cause or no line.
    """
    text = path.read_text(encoding="utf-8")
    planted, why = comment(text, "planted"), comment(text, "clean")
    if (planted is None) == (why is None):
        raise HeaderError(f"{path.name}: expected either `# planted:` or `# clean:`")
    said = fields(planted) if planted else {}
    if said.keys() - {"cause", "or", "in"}:
        raise HeaderError(f"{path.name}: unknown words in `# planted: {planted}`")
    causes = tuple(said[key] for key in ("cause", "or") if key in said)
    if (planted and "cause" not in said) or set(causes) - set(CAUSES):
        raise HeaderError(f"{path.name}: expected one of {', '.join(CAUSES)}, found {causes}")
    helper = path.parent / said["in"] if "in" in said else None
    files = [path, helper] if helper else [path]
    script = Script(
        path=path,
        causes=causes,
        why=why or "",
        helper=helper,
        options=tuple((comment(text, "options") or "").split()),
        planted=frozenset().union(*(marked(file, PLANTED) for file in files)),
        enters=frozenset().union(*(marked(file, ENTERS) for file in files)),
    )
    if bool(script.planted) == script.is_clean:
        raise HeaderError(f"{path.name}: a planted script needs a line marked {PLANTED!r}, a clean one none")
    return script


def read_corpus(folder: Path = SCRIPTS) -> list[Script]:
    """All scripts, by cause and name. A module without comments of its own is a helper of those beside it.

    Raises:
        HeaderError: The comments of a script are not valid.
    """
    paths = [path for path in folder.glob("*/*.py") if is_script(path)]
    scripts = [read_script(path) for path in paths]
    order = [*CAUSES, CLEAN]
    return sorted(scripts, key=lambda script: (order.index(script.cause), script.name))


def is_script(path: Path) -> bool:
    """Whether that file is run by itself."""
    text = path.read_text(encoding="utf-8")
    return comment(text, "planted") is not None or comment(text, "clean") is not None
