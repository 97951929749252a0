"""Where ranks are: MPI alone says the same as Horovod."""

import pytest
from script_harness import DEMOS, mpirun, needs_horovod

needs_horovod()
pytestmark = pytest.mark.horovod

NAMES = {"rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"}


def test_mpi_says_what_horovod_says(run):
    found = {}
    for library, flags in {"mpi4py": ["--library", "mpi4py"], "horovod": []}.items():  # the default
        done = run(*mpirun(2), DEMOS / "show_placement.py", *flags, timeout=240)
        places = sorted(done.events("placement"), key=lambda one: one["rank"])
        assert [one.pop("library") for one in places] == [library] * 2
        found[library] = places
    assert found["mpi4py"] == found["horovod"]
    first, second = found["mpi4py"]
    assert set(first) >= NAMES
    assert (first["local_rank"], second["local_rank"]) == (0, 1)
    assert second["rank"] == 1 and second["local_size"] == 2 and second["cross_size"] == 1
