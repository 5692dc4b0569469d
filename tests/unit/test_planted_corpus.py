"""The comments of the planted corpus, and how answers are scored; the scripts themselves are not run here."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

PLANTED_FOLDER = Path(__file__).parents[2] / "bench" / "planted"
# The harness is a plain script whose modules lie beside it.
sys.path.insert(0, str(PLANTED_FOLDER))
try:
    import corpus
    import remedies
    import scores
finally:
    sys.path.remove(str(PLANTED_FOLDER))

SCRIPTS = corpus.read_corpus()
FINDING = {"site": None, "forward_site": None, "cause": "unknown", "evidence": []}


def place(name, line):
    """A site of a finding, as JSON has it."""
    return {"file": f"/code/{name}", "line": line, "function": "main"}


def different(**first):
    """The answer of `verify --json` with one finding."""
    return {"verdict": "different", "findings": [{**FINDING, **first}]}


def write(folder, text, name="script.py"):
    """A script of a corpus of its own."""
    (folder / "wall-clock").mkdir(exist_ok=True)
    path = folder / "wall-clock" / name
    path.write_text(text)
    return path


@pytest.fixture
def script(tmp_path):
    """A script whose chance enters at line 3, and becomes a tensor at lines 4 and 5."""
    text = (
        '"""Doc."""\n# planted: cause=wall-clock or=autotuning\n'
        "now = clock()  # <- planted\nx = tensor(\n    now)  # <- enters\ny = x\n"
    )
    return corpus.read_script(write(tmp_path, text))


def test_the_corpus_is_large_enough():
    """At least 80 planted scripts and 40 clean ones, and several for every cause; some need a GPU."""
    counts = Counter(script.cause for script in SCRIPTS)
    on_gpu = Counter(script.cause for script in corpus.read_corpus(corpus.CUDA_SCRIPTS))

    assert sum(counts[cause] for cause in corpus.CAUSES) >= 80
    assert counts[corpus.CLEAN] >= 40
    assert [cause for cause in corpus.CAUSES if max(counts[cause], on_gpu[cause]) < 3] == []


def test_names_are_unique_and_folders_are_causes():
    """A name is enough to find a script, and its folder is the cause that it is counted under."""
    names = Counter(script.name for script in SCRIPTS)

    assert [name for name, count in names.items() if count > 1] == []
    assert [script.name for script in SCRIPTS if script.path.parent.name != script.cause] == []


def test_every_file_is_a_script_or_its_helper():
    """No file is left over that nothing runs."""
    files = set(corpus.SCRIPTS.glob("*/*.py"))
    helpers = {script.helper for script in SCRIPTS if script.helper}

    assert files - {script.path for script in SCRIPTS} - helpers == set()


def test_helpers_are_imported():
    """A helper that a script names is one that it imports."""
    for script in SCRIPTS:
        if script.helper:
            assert re.search(rf"^from {script.helper.stem} import", script.path.read_text(), re.MULTILINE)


def test_the_corpus_for_a_gpu():
    """Each script says what is true of it, lies in the folder of its cause, and uses the GPU."""
    scripts = corpus.read_corpus(corpus.CUDA_SCRIPTS)

    assert len(scripts) >= 50
    assert [script.name for script in scripts if script.path.parent.name != script.cause] == []
    assert [script.name for script in scripts if "cuda" not in script.path.read_text()] == []
    assert {script.path for script in scripts} == set(corpus.CUDA_SCRIPTS.glob("*/*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_is_short_and_says_what_it_is(script):
    """Documentation first, at most 60 lines, valid Python."""
    text = script.path.read_text()

    assert text.startswith('"""')
    assert len(text.splitlines()) <= 60
    compile(text, script.name, "exec")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n", "either"),
        ("# planted: cause=race\n# clean: because\nx = 1  # <- planted\n", "either"),
        ("# planted: cause=magic\nx = 1  # <- planted\n", "magic"),
        ("# planted: or=race\nx = 1  # <- planted\n", "expected one of"),
        ("# planted: race\nx = 1  # <- planted\n", "key=value"),
        ("# planted: cause=race why=me\nx = 1  # <- planted\n", "unknown words"),
        ("# planted: cause=race\nx = 1\n", "needs a line"),
        ("# clean: because\nx = 1  # <- planted\n", "needs a line"),
    ],
)
def test_wrong_comments_are_refused(tmp_path, text, complaint):
    """Each rule of the comments can fail."""
    with pytest.raises(corpus.HeaderError, match=complaint):
        corpus.read_script(write(tmp_path, text))


def test_a_mark_covers_its_statement(script):
    """Of a statement of several lines all count; the lines before and after do not."""
    assert script.causes == ("wall-clock", "autotuning")
    assert script.planted == {("script.py", 3)}
    assert script.enters == {("script.py", 4), ("script.py", 5)}


def test_a_mark_on_a_loop_covers_its_head_only(tmp_path):
    """The body of a loop is not what is marked."""
    text = "# planted: cause=race\nfor x in y:  # <- planted\n    f(x)\n"

    assert corpus.read_script(write(tmp_path, text)).planted == {("script.py", 2)}


def test_marks_in_a_helper_count(tmp_path):
    """The line to blame may lie in a module beside the script, which is no script itself."""
    write(tmp_path, "def f():\n    return clock()  # <- planted\n", name="helper.py")
    write(tmp_path, "# planted: cause=wall-clock in=helper.py\nfrom helper import f\n")

    [script] = corpus.read_corpus(tmp_path)
    assert script.planted == {("helper.py", 2)}


def test_the_fingerprint_follows_the_code_not_the_marks(tmp_path):
    """A result stays good when only a mark was moved."""
    marked = corpus.read_script(write(tmp_path, "# planted: cause=race\nx = 1  # <- planted\ny = 2\n"))
    before = marked.fingerprint
    write(tmp_path, "# planted: cause=race\nx = 1\ny = 2  # <- planted\n")
    moved = marked.fingerprint
    write(tmp_path, "# planted: cause=race\nx = 1\ny = 3  # <- planted\n")
    changed = marked.fingerprint
    write(tmp_path, "# planted: cause=race\n\nx = 1\ny = 2  # <- planted\n")

    assert before == moved
    assert len({before, changed, marked.fingerprint}) == 3


@pytest.mark.parametrize(
    ("site", "expected"),
    [(3, "hit"), (4, "entry"), (5, "entry"), (1, "near"), (6, "near"), (7, "near"), (8, "miss")],
)
def test_lines_are_scored(script, site, expected):
    """By the distance to a marked line of the same file."""
    result = scores.score(script, different(site=place("script.py", site)), seconds=1)

    assert result.line == expected
    assert scores.score(script, different(site=place("other.py", site)), seconds=1).line == "miss"


def test_the_forward_line_of_a_backward_operation_counts(script):
    """A finding may show two places."""
    found = different(site=place("script.py", 90), forward_site=place("script.py", 3))

    assert scores.score(script, found, seconds=1).line == "hit"


def test_a_later_finding_is_near(script):
    """The first finding is the answer; the right line among the others is worth something."""
    found = different(site=place("script.py", 90))
    found["findings"].append({**FINDING, "site": place("script.py", 3)})

    assert scores.score(script, found, seconds=1).line == "near"


def test_evidence_may_name_the_source(script):
    """The line where chance enters may be told in words."""
    found = different(site=place("script.py", 4), evidence=["read at script.py:3"])

    assert scores.score(script, found, seconds=1).named
    assert not scores.score(script, different(site=place("script.py", 4)), seconds=1).named


@pytest.mark.parametrize(
    ("cause", "expected"),
    [("wall-clock", "hit"), ("autotuning", "hit"), ("unknown", "unknown"), ("race", "wrong")],
)
def test_causes_are_scored(script, cause, expected):
    """Each of the right answers is right; unknown is honest."""
    assert scores.score(script, different(cause=cause), seconds=1).cause == expected


def test_a_fault_that_does_not_show_is_no_answer(script):
    """Identical scores nothing and counts against the rates."""
    unseen = scores.score(script, {"verdict": "identical", "findings": []}, seconds=1)
    seen = scores.score(script, different(site=place("script.py", 3), cause="wall-clock"), seconds=1)

    assert (unseen.line, unseen.cause) == ("-", "-")
    text = "\n".join(scores.figures([unseen, seen]))
    assert re.search(r"origin line +1 of 2 \(50 %\)", text)
    assert re.search(r"cause right +1 of 2 \(50 %\)", text)
    assert "false alarms" not in text


def test_false_alarms_are_counted(tmp_path):
    """A clean script that differs is one; one that could not be judged is not."""
    clean = corpus.read_script(write(tmp_path, "# clean: only looks it\nx = 1\n"))
    answers = [
        different(),
        {"verdict": "identical", "findings": []},
        {"verdict": "not_judged", "findings": []},
    ]
    text = "\n".join(scores.figures([scores.score(clean, found, seconds=1) for found in answers]))

    assert re.search(r"false alarms +1 of 3", text)
    assert re.search(r"not judged +1 of 3", text)
    assert "origin line" not in text


def change(line, before, after, file="/code/a.py"):
    """A change as JSON has it."""
    return {"file": file, "line": line, "before": before, "after": after}


def test_changes_are_made_at_their_lines_whatever_their_order():
    """Lines are added before the one of that number, replaced and removed."""
    changes = [change(1, [], ["import random"]), change(2, ["b"], ["B", "BB"]), change(3, ["c"], [])]

    assert remedies.applied("a\nb\nc\nd\n", changes) == "import random\na\nB\nBB\nd\n"


def test_lines_that_are_not_those_of_the_report_are_noticed():
    """The file has changed, or the report is wrong."""
    with pytest.raises(ValueError, match="line 2 is not"):
        remedies.applied("a\nb\n", [change(2, ["c"], ["d"])])


def test_only_what_is_called_tried_is_applied():
    """Where interventions alone were run, nothing is claimed of the lines."""
    remedy = {"confirmed": True, "changes": [change(1, [], ["x"])]}

    assert remedies.tried_changes(different(remedy=remedy)) == remedy["changes"]
    assert remedies.tried_changes(different(remedy={**remedy, "confirmed": None})) == []
    assert remedies.tried_changes({"verdict": "identical", "findings": []}) == []
