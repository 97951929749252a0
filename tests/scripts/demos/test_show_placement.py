"""Where ranks are: MPI alone says the same as Horovod."""

import pytest
from script_harness import DEMOS, mpirun, needs_horovod

needs_horovod()
pytestmark = pytest.mark.horovod

NAMES = {"rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"}


def test_mpi_says_what_horovod_says(run):
    by_library = {}
    for library, flags in {"mpi4py": ["--library", "mpi4py"], "horovod": []}.items():  # the default
        done = run(*mpirun(2), DEMOS / "show_placement.py", *flags, timeout=240)
        places = sorted(done.events("placement"), key=lambda row: row["rank"])
        assert [row.pop("library") for row in places] == [library] * 2
        by_library[library] = places
    assert by_library["mpi4py"] == by_library["horovod"]
    first, second = by_library["mpi4py"]
    assert set(first) >= NAMES
    assert (first["local_rank"], second["local_rank"]) == (0, 1)
    assert second["rank"] == 1 and second["local_size"] == 2 and second["cross_size"] == 1
