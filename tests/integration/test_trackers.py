"""Records logged to the real trackers, offline, and read back from what they stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from cli_support import NOISY, SEEDED, environment, write

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3k"

MLFLOW = """
    import json, mlflow
    from samebits.integrations.mlflow import log_record
    mlflow.set_tracking_uri("sqlite:///runs.db")
    with mlflow.start_run() as run:
        log_record("a.sbr", "b.sbr")
    client = mlflow.MlflowClient()
    tags = client.get_run(run.info.run_id).data.tags
    files = {item.path: item.file_size for item in client.list_artifacts(run.info.run_id, "samebits")}
    print(json.dumps([tags, files]))
"""
WANDB = """
    import wandb
    from samebits.integrations.wandb import log_record
    with wandb.init(mode="offline", project="p") as run:
        log_record("a.sbr", "b.sbr")
"""
# The log of an offline run: blocks of 32 KiB, in them pieces with 7 bytes of head, as in LevelDB's log format
# (https://github.com/google/leveldb/blob/main/doc/log_format.md), after 7 bytes of wandb's own.
READ_WANDB = """
    import json, os, struct
    from pathlib import Path
    from wandb.proto.wandb_internal_pb2 import Record

    def records(data):
        at, parts = 7, []
        while at + 7 <= len(data):
            left = 32768 - at % 32768
            if left < 7:
                at += left
                continue
            size, kind = struct.unpack_from("<HB", data, at + 4)
            parts.append(data[at + 7 : at + 7 + size])
            at += 7 + size
            if kind in (1, 4):
                yield Record.FromString(b"".join(parts))
                parts = []

    tags, files = {}, {}
    for record in records(next(Path("wandb").glob("offline-run-*/run-*.wandb")).read_bytes()):
        for item in record.summary.update:
            tags[item.key] = json.loads(item.value_json)
        for item in record.artifact.manifest.contents:
            files[item.path] = os.path.getsize(item.local_path)
    print(json.dumps([tags, files]))
"""
TENSORBOARD = """
    import json
    from torch.utils.tensorboard import SummaryWriter
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from samebits.integrations.tensorboard import log_record
    with SummaryWriter("log") as writer:
        log_record("a.sbr", "b.sbr", writer=writer)
    events = EventAccumulator("log").Reload()
    print(json.dumps({
        tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in events.Tags()["tensors"]
    }))
"""


def python(folder: Path, code: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process, in a folder."""
    quiet = {
        "WANDB_SILENT": "true",
        "WANDB_DATA_DIR": str(folder),
        "WANDB_CACHE_DIR": str(folder),
        "WANDB_MODE": "offline",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **extra,
    }
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env=environment(**quiet),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def answer(folder: Path, code: str) -> object:
    """Return the JSON in the last line that code prints."""
    done = python(folder, code)

    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of two runs of one script, which got a secret as an argument."""
    folder = tmp_path_factory.mktemp("trackers")
    write(folder, "train.py", SEEDED, STEPS=3)
    for name in ("a.sbr", "b.sbr"):
        command = [sys.executable, "-m", "samebits", "run", "--seed", "7", "--record", name]
        command += ["train.py", "--model", SECRET]
        subprocess.run(command, cwd=folder, env=environment(), check=True, capture_output=True, timeout=300)
    return folder


def check_tags(tags: dict[str, str]) -> None:
    """The facts of the run are among the tags, and no secret is."""
    assert tags["samebits.verdict"] == "identical"
    assert tags["samebits.steps"] == "3"
    assert tags["samebits.seed"] == "7"
    assert tags["samebits.torch"].startswith("2.")
    assert len(tags["samebits.final_state"]) == len(tags["samebits.environment"]) == 32
    assert tags["samebits.command"] == "train.py --model ***"
    assert SECRET not in json.dumps(tags)


def test_mlflow_has_tags_and_files(folder):
    """MLflow's store has the tags, and the record, the page and the digests as artifacts."""
    tags, files = answer(folder, MLFLOW)

    check_tags(tags)
    assert files["samebits/a.sbr"] == os.path.getsize(folder / "a.sbr")
    assert set(files) == {"samebits/a.sbr", "samebits/a.html", "samebits/a-digests.txt"}


def test_wandb_has_a_summary_and_files(folder):
    """The file of an offline run of wandb has the summary, and an artifact with the files."""
    logged = python(folder, WANDB)
    tags, files = answer(folder, READ_WANDB)  # in another process: the log is whole when the first has ended

    assert logged.returncode == 0, logged.stderr

    check_tags(tags)
    assert files["a.sbr"] == os.path.getsize(folder / "a.sbr")
    assert set(files) == {"a.sbr", "a.html", "a-digests.txt"}


def test_tensorboard_has_texts(folder):
    """TensorBoard reads back the facts, and one digest for each step."""
    texts = answer(folder, TENSORBOARD)

    assert set(texts) == {"samebits/record/text_summary", "samebits/digests/text_summary"}
    assert "| samebits.verdict | `identical` |" in texts["samebits/record/text_summary"]
    assert SECRET not in json.dumps(texts)
    steps = [line.split("\t") for line in texts["samebits/digests/text_summary"].splitlines()[1:]]
    assert [step.strip() for step, _, _ in steps][:3] == ["0", "1", "2"]
    assert len({state for _, state, _ in steps[:3]}) == 3


def test_a_difference_is_the_verdict(folder, tmp_path):
    """Two runs that differ are logged as different, with the page of the comparison."""
    write(tmp_path, "noisy.py", NOISY)
    for name in ("a.sbr", "b.sbr"):
        command = [sys.executable, "-m", "samebits", "run", "--record", name, "noisy.py"]
        subprocess.run(command, cwd=tmp_path, env=environment(), check=True, capture_output=True, timeout=300)
    code = """
    from samebits.integrations._record_facts import record_facts
    facts = record_facts("a.sbr", "b.sbr")
    print(facts.tags["samebits.verdict"], "noisy.py" in facts.page)
    """
    assert python(tmp_path, code).stdout.split() == ["different", "True"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import sys; sys.modules['mlflow'] = None; LOG",
            "samebits.integrations.mlflow needs the package mlflow: pip install mlflow",
        ),
        ("LOG", "no run of MLflow is active"),
    ],
)
def test_what_is_missing_is_one_line(folder, code, expected):
    """Without the tracker, or without a run of it, there is one clear error and nothing is logged."""
    log = "from samebits.integrations.mlflow import log_record; log_record('a.sbr')"
    done = python(folder, code.replace("LOG", log))

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("samebits.errors.SamebitsError: ")
    assert expected in last
