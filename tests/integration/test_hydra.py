"""Scripts with `@hydra.main` under samebits: output folders named by the time, jobs in them, several jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli_support import environment, write

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
    import hydra
    import torch
    from hydra.core.hydra_config import HydraConfig

    @hydra.main(version_base=None, config_path=None)
    def main(config) -> None:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=config.x / 10)
        for _ in range(3):
            SEEDING
            optimizer.zero_grad()
            model(torch.randn(6, 4)).square().mean().backward()
            optimizer.step()
        torch.save(model.state_dict(), HydraConfig.get().runtime.output_dir + "/model.pt")

    if __name__ == "__main__":
        main()
"""


def verified(folder: Path, *arguments: str, seeding: str = "pass") -> dict[str, object]:
    """Return what `verify --json` says of the script with overrides."""
    write(folder, "train.py", SCRIPT, SEEDING=seeding)
    command = [sys.executable, "-m", "samebits", "verify", "--json", "train.py", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=600, check=False
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("arguments", [("+x=1",), ("+x=1", "hydra.job.chdir=true")], ids=["here", "chdir"])
def test_folders_named_by_time_are_no_difference(tmp_path, arguments):
    """Two runs write the same model into folders of other names, also where the job runs in that folder."""
    result = verified(tmp_path, *arguments)

    assert (result["verdict"], result["steps"]) == ("identical", 3)
    assert len(list(tmp_path.glob("outputs/*/*/model.pt"))) == 2


def test_several_jobs_are_one_run(tmp_path):
    """With `--multirun` the steps of all jobs are compared."""
    result = verified(tmp_path, "--multirun", "+x=1,2")

    assert (result["verdict"], result["steps"]) == ("identical", 6)


def test_a_difference_in_a_job_is_found(tmp_path):
    """A job that draws without a seed is blamed at its line, for that cause, not for the folder's time."""
    result = verified(tmp_path, "+x=1", seeding="torch.seed()")
    finding = result["findings"][0]

    assert result["verdict"] == "different"
    assert finding["site"]["file"].endswith("train.py")
    lines = (tmp_path / "train.py").read_text().splitlines()
    blamed = {finding["site"]["line"], *(each["site"]["line"] for each in finding["sources"])}
    assert blamed & {n for n, line in enumerate(lines, 1) if "torch.seed()" in line or "randn" in line}
    assert finding["cause"] == "unseeded-torch"
