"""Where ranks are: MPI alone says the same as Horovod."""

import pytest
from script_harness import DEMOS, mpirun, needs_horovod

needs_horovod()
pytestmark = pytest.mark.horovod

NAMES = {"rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"}


@pytest.mark.parametrize(
    "library", ["mpi4py", pytest.param("horovod", marks=[pytest.mark.horovod, pytest.mark.soak])]
)
def test_mpi_says_what_horovod_says(run, library):
    """Lesson 04 asks Horovod, which is the default, in a job."""
    flags = ["--library", "mpi4py"] if library == "mpi4py" else []
    done = run(*mpirun(2), DEMOS / "show_placement.py", *flags, timeout=240)
    first, second = sorted(done.events("placement"), key=lambda row: row["rank"])
    assert first["library"] == second["library"] == library
    assert set(first) >= NAMES
    assert (first["local_rank"], second["local_rank"]) == (0, 1)
    assert second["rank"] == 1 and second["local_size"] == 2 and second["cross_size"] == 1
