"""train_torch_ddp.py, in which one rank dies by SIGKILL in its first life, in DIE_AT_STEP."""

import os
import runpy
import signal
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from common.report import Report  # noqa: E402

finish = Report.step


def step(self, loss):
    """Die before the step is told."""
    first_life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    mine = os.environ.get("RANK", "0") == os.environ["DIE_RANK"]
    if first_life and mine and self._step + 1 == int(os.environ["DIE_AT_STEP"]):
        os.kill(os.getpid(), signal.SIGKILL)
    finish(self, loss)


Report.step = step
runpy.run_path(str(SCRIPTS / "train_torch_ddp.py"), run_name="__main__")
