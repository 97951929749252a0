"""Lesson 05, executed with smaller numbers; its recorded results are what is tested."""

import pytest
from lesson_runs import SMALL

from workshop.launch.horovod import horovod_status

# Ranks: the four places, one of them twice, and the last without a VPC, too.
ROWS = {"mpirun here, 1 x 2": 2, "1 x 2": 2, "2 x 1": 2, "2 x 1 again": 2}
ROWS |= {"2 x 2": 4, "2 x 2 in a VPC": 4}


def check_what_was_measured(results):
    assert set(results["scaling"]) == set(ROWS)  # a notebook file keeps no order of names
    for name, record in results["scaling"].items():
        assert record["world_size"] == ROWS[name], name
        assert results["comparison"][name] == record["speed_up"]["median"] > 0
    # Locally the two jobs with 2 x 2 are identical: they say what noise is, and get no verdict.
    assert set(results["verdicts"]) == {"mpirun here, 1 x 2", "2 x 1"}
    assert results["noise"] >= 1 and set(results["against_one"]) == set(ROWS)
    images = results["by_length"]["images"]
    assert images == sorted(images) and images[-1] == SMALL["05"]["measured_batch"]
    milliseconds = results["by_length"]["one process, ms"]
    # Steps of 4 ms may change their order on a busy machine; the whole batch's is ten times longer.
    assert milliseconds[-1] == max(milliseconds), "the most images, the longest step"
    assert results["loss_spread"] < 0.001
    assert 0 < results["share_of_steps"] < 1


@pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))
def test_lesson_05(results):
    assert results["status"] == "Completed"
    assert results["world_size"] == 4
    assert results["ranks_per_host"] == {"algo-1": 2, "algo-2": 2}
    assert results["different_weights"] == 1 and len(results["hashes"]) == 4
    assert results["different_without_averaging"] == 4
    assert results["losses"][-1] < results["losses"][0] / 4
    assert results["accuracy"] >= 0.8
    assert results["command"] == "mpirun --host algo-1:2,algo-2:2 -np 4"
    check_what_was_measured(results)
    assert len(results["native_hashes"]) == 2 and len(set(results["native_hashes"])) == 1
    assert '"algo-1:8890"' in results["tf_config"] and '"index": 1' in results["tf_config"]
    assert results["vpc_config"]["Subnets"][0].startswith("subnet-")
    assert results["vpc_config"]["SecurityGroupIds"][0].startswith("sg-")
    assert results["usd"] == pytest.approx(13 * 300 / 3600 * 0.204, rel=0.5)  # prices move
    assert results["usd"] < results["usd_at_most"] < 1
    assert results["misspelled_option_sent"] is False
    assert results["parameter_server_starts_mpi"] is False
