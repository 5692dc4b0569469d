"""Each code of the closed list of reasons has a sentence, and every reason that is made fits it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from samebits.comparison.reasons import Reason, ReasonCode
from samebits.report.reasons import _SENTENCES, sentence
from samebits.report.vocabulary import rank_words, some_names

SOURCE = Path(__file__).parents[3] / "src"


def made() -> list[tuple[str, list[ast.expr]]]:
    """The reasons that the source makes: name of the code, arguments."""
    nodes = (
        node
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    return [
        (ast.unparse(node.args[0]).rpartition(".")[2], node.args[1:])
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Reason.of"
    ]


def test_each_code_has_a_sentence_and_is_used() -> None:
    assert set(_SENTENCES) == set(ReasonCode)
    assert {name for name, _ in made()} == {code.name for code in ReasonCode}


def test_the_arguments_fit_the_sentence() -> None:
    for name, arguments in made():
        if any(isinstance(argument, ast.Starred) for argument in arguments):
            continue  # their number is not in the source
        form = _SENTENCES[ReasonCode[name]]
        if isinstance(form, str):
            assert form.count("{") == len(arguments), name
        else:
            inspect.signature(form).bind(*arguments)


def test_a_reason_may_hold_another() -> None:
    ending = Reason.of(ReasonCode.FAILED_AT, "ValueError: no", 3, 1)
    whole = Reason.of(ReasonCode.FAILED_IN_ONE, "a.py", 2, ending, True, False)
    assert sentence(Reason.of(ReasonCode.OF_RANK, 1, Reason.of(ReasonCode.IN_CHILD, "c-1", whole))) == (
        "rank 1: in the child process c-1: a.py failed in run 2 only: ValueError: no (at step 3, exit status "
        "1); run 1 was stopped at a difference"
    )


def test_ranks_and_names_are_shortened() -> None:
    assert rank_words([1]) == "rank 1"
    assert rank_words([0, 1]) == "ranks 0 and 1"
    assert rank_words([0, 1, 2, 5]) == "ranks 0-2 and 5"
    assert some_names(["a", "b", "c", "d"]) == "a, b, c and 1 more"


def test_the_rank_that_failed_comes_before_those_that_were_ended():
    """A launcher ends the others when one fails."""
    failed = ((1, 2, "RuntimeError: planted"),)
    assert sentence(Reason.of(ReasonCode.RANKS_INCOMPLETE, (3,), (0, 2), failed)) == (
        "there is no record of rank 3; rank 1 failed after 2 steps (RuntimeError: planted); "
        "ranks 0 and 2 were killed, or still running"
    )
