"""measure_all_reduce.py with a two-tier all-reduce that forgets to go across the instances."""

import runpy
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from collectives import ring  # noqa: E402  (the path first)

ring.all_reduce = lambda *_, **__: None
runpy.run_path(str(SCRIPTS / "measure_all_reduce.py"), run_name="__main__")
