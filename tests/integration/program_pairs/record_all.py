"""Records every program in this folder, in one process: `record_all.py OUT [--own-names]`."""

import gc
import runpy
import sys
from pathlib import Path

import torch

import samebits

out, options = Path(sys.argv[1]), sys.argv[2:]
for script in sorted(Path(__file__).parent.glob("*_[ab].py")):
    sys.argv = [str(script), *options]
    torch.manual_seed(0)
    with samebits.record(out / f"{script.stem}.sbr"):
        runpy.run_path(str(script), run_name="__main__")
    gc.collect()
