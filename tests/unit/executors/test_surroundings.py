"""What a job takes over from its command."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from samebits.errors import SamebitsError
from samebits.executors.surroundings import surroundings


def test_a_machine_without_the_folder_is_told(tmp_path):
    """By its name, before anything of the process is changed."""
    around = replace(surroundings(shares_files=True), folder=str(tmp_path / "gone"))
    before, folder = dict(os.environ), os.getcwd()

    told = f"the job on {os.uname().nodename} cannot work in .*gone: No such file"
    with pytest.raises(SamebitsError, match=told), around.entered():
        pass

    assert (dict(os.environ), os.getcwd()) == (before, folder)
