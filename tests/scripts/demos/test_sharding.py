"""measure_sharding.py: its flags. What it measures is tested where it runs as a job: lesson 11."""

from script_harness import DEMOS, mpirun


def test_an_unknown_way_is_refused(run):
    done = run(*mpirun(1), DEMOS / "measure_sharding.py", "--ways", "zero4", check=False)
    assert done.code == 2 and "no zero4; there are ddp, zero1" in done.stderr
