"""lose_an_instance.py: torchrun goes on with three ranks of four, and with four again."""

import json

import pytest
from script_harness import DEMOS, alone

SCRIPT = DEMOS / "lose_an_instance.py"


def test_a_batch_that_three_ranks_cannot_divide_is_refused(run):
    done = run(*alone(), SCRIPT, "--global-batch-size", "16", check=False)
    assert done.code == 1 and "no multiple of 3 and 4 ranks" in done.stderr


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_four_ranks_then_three_then_four_train_what_one_process_trains(run):
    done = run(*alone(), SCRIPT, "--steps", "600", "--patience", "500", timeout=1700)
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    worlds = [r["world_size"] for r in records if r["event"] == "start"]
    assert worlds == [4, 3, 4, 1]
    names = [r["event"] for r in records]
    assert names.count("resumed") == 2
    hashes = [r["weights_sha256"] for r in records if r["event"] == "weights"]
    compared = records[-1]
    assert len(hashes) == 5 and len(set(hashes[:4])) == 1
    # Rounding: 1e-5 was seen. A restart that loses the momentum ends 4e-2 apart.
    assert compared["apart"] < 1e-3 * compared["largest"]
