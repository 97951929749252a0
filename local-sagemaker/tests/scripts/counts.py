"""Counts up to --until, ten a second; keeps the count as a checkpoint and resumes from it."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--until", type=int)
parser.add_argument("--on-notice", default="leave")
parser.add_argument("--model_dir")
args = parser.parse_args()
host = os.environ["SM_CURRENT_HOST"]
folder = Path(os.environ.get("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints"))
count_file = folder / "count.txt"
count = int(count_file.read_text()) if count_file.exists() else 0


def notice(*_):
    """SIGTERM."""
    print("NOTICE", host, flush=True)
    if args.on_notice == "leave":
        sys.exit(0)


signal.signal(signal.SIGTERM, notice)
print("FROM", host, count, flush=True)
while count < args.until:
    count += 1
    print("COUNT", host, count, flush=True)
    if host == "algo-1":
        partial = folder / ".count.partial"
        partial.write_text(str(count))
        partial.replace(count_file)
    time.sleep(0.1)
Path(os.environ["SM_MODEL_DIR"], "count.txt").write_text(str(count))
