"""Ranks that come one by one find one folder, and no other launch's."""

from __future__ import annotations

import json
import threading

import pytest

from samebits.environment.distributed import RankFacts
from samebits.errors import SamebitsError
from samebits.verification.rank_records import given_rank_record, rank_record, read_label


def facts(rank, launch="first", world_size=2):
    return RankFacts(rank, world_size, rank, 0, launch)


def test_all_ranks_of_a_launch_share_a_folder(tmp_path):
    """And each has a file of its own in it."""
    records = [rank_record(facts(rank), tmp_path, "train") for rank in (1, 0)]

    assert records == [tmp_path / "train-1.ranks" / f"rank-{rank}.sbr" for rank in (1, 0)]
    assert read_label(records[0].parent)["launch"] == "first"


def test_ranks_that_come_at_once(tmp_path):
    """Many at the same moment make one folder, and leave nothing else."""
    found, barrier = [], threading.Barrier(16)

    def come(rank):
        barrier.wait()
        found.append(rank_record(facts(rank, world_size=16), tmp_path, "train"))

    threads = [threading.Thread(target=come, args=(rank,)) for rank in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 16
    assert {record.parent.name for record in found} == {"train-1.ranks"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["train-1.ranks"]


def test_the_next_launch_and_a_restart_get_another(tmp_path):
    """Also a restart that has the same name, because the rank has a record already."""
    for rank in (0, 1):
        rank_record(facts(rank), tmp_path, "train").write_bytes(b"x")

    assert rank_record(facts(0, "second"), tmp_path, "train").parent.name == "train-2.ranks"
    assert rank_record(facts(0), tmp_path, "train").parent.name == "train-3.ranks"
    assert rank_record(facts(1), tmp_path, "train").parent.name == "train-3.ranks"


def test_a_folder_that_was_named(tmp_path):
    """It is made, joined by the other ranks, and refused to the next launch unless that is forced."""
    folder = tmp_path / "a"
    for rank in (0, 1):
        given_rank_record(facts(rank), folder, force=False).write_bytes(b"x")

    with pytest.raises(SamebitsError, match="not overwritten") as caught:
        given_rank_record(facts(0, "second"), folder, force=False)
    assert caught.value.slug == "record-exists"
    assert given_rank_record(facts(0, "second"), folder, force=True) == folder / "rank-0.sbr"
    assert sorted(entry.name for entry in folder.iterdir()) == ["launch.json"]
    assert given_rank_record(facts(1, "second"), folder, force=True) == folder / "rank-1.sbr"


def test_an_empty_folder_is_taken_and_a_foreign_one_is_not(tmp_path):
    """Nothing that is not a folder of records is replaced, not even by force."""
    (tmp_path / "empty").mkdir()
    assert given_rank_record(facts(0), tmp_path / "empty", force=False).parent == tmp_path / "empty"
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    for name in ("file", "full"):
        with pytest.raises(SamebitsError) as caught:
            given_rank_record(facts(0), tmp_path / name, force=True)
        assert caught.value.slug == "record-exists"
    assert (tmp_path / "full" / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps("x"), "[" * 100_000])
def test_a_label_is_not_trusted(tmp_path, text):
    """Whatever is in it, it is read without a traceback."""
    (tmp_path / "launch.json").write_text(text)

    assert read_label(tmp_path) == {}
