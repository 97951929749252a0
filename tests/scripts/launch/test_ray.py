"""Ray Train runs train_torch_ddp.py on two local workers, and trains what torchrun trains.

Ray lives in an environment of its own: `make ray` makes it, and runs this test.
"""

import re

import pytest
from script_harness import TRAIN, channels, copied, difference, start
from test_launch import LAUNCH

PYTHON = TRAIN.parents[1] / "build" / "ray" / "bin" / "python"
FLAGS = ["--max-steps", "30"]  # 22 steps an epoch: into the second
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


def test_ray_trains_what_torchrun_trains(digits, tmp_path):
    if not PYTHON.exists():
        pytest.skip("Ray is not installed; `make ray` installs it into build/ray and runs this")
    command = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    script = copied("train_torch_ddp.py", tmp_path / "torchrun")
    reference = start(command, script, *FLAGS, *channels(digits))
    # A worker's stdout reaches Ray's with a prefix, and repeated lines only once.
    script = copied("train_torch_ddp.py", tmp_path / "ray")
    command = [PYTHON, LAUNCH / "ray_train.py", "--workers", "2"]
    flags = [*FLAGS, *channels(digits), "--save-to", tmp_path / "ray" / "model"]
    # A busy machine needs more than Ray's 60 s to start two workers.
    settings = {"RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "300", "RAY_DEDUP_LOGS": "0"}
    settings["RAY_USAGE_STATS_ENABLED"] = "0"
    done = start(command, script, *flags, timeout=400, **settings)
    printed = done.stdout + done.stderr
    hashes = dict(re.findall(r'"rank": (\d+), "weights_sha256": "(\w+)"', printed))
    assert {int(rank): value for rank, value in hashes.items()} == reference.hashes
    assert difference(tmp_path / "torchrun", tmp_path / "ray") == 0
