"""measure_all_reduce.py with a two-tier all-reduce that forgets to go across the instances."""

import runpy
import sys
from pathlib import Path

DEMOS = Path(__file__).resolve().parents[2] / "scripts" / "demos"
sys.path.insert(0, str(DEMOS))

from collectives import ring  # noqa: E402  (the path first)

ring.all_reduce = lambda *_, **__: None
runpy.run_path(str(DEMOS / "measure_all_reduce.py"), run_name="__main__")
