"""Each rank prints where it is: host, rank, size, local_rank, local_size, cross_rank, cross_size.

    mpirun -np 2 python scripts/demos/show_placement.py

SageMaker: entry_point="show_placement.py", source_dir=this folder, distribution={"mpi": {"enabled":
True, "processes_per_host": 2}}. The numbers come from Horovod; where it is not installed, or
with --library mpi4py, which starts much faster, from MPI itself, grouped as Horovod does it.
"""

import importlib.util
import socket

from common.arguments import plain_parser
from common.report import emit


def from_horovod() -> dict:
    """The numbers as Horovod gives them."""
    from common import keras2  # noqa: F401  (whoever imports TensorFlow first chooses the Keras)

    # isort: split
    import horovod.tensorflow as hvd

    hvd.init()
    names = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
    return {name: getattr(hvd, name)() for name in names}


def from_mpi() -> dict:
    """The same numbers: processes that share memory are one host."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    local = world.Split_type(MPI.COMM_TYPE_SHARED)
    cross = world.Split(local.rank)
    return {
        "rank": world.rank,
        "size": world.size,
        "local_rank": local.rank,
        "local_size": local.size,
        "cross_rank": cross.rank,
        "cross_size": cross.size,
    }


def main() -> None:
    """Join the other ranks, print this rank's placement."""
    parser = plain_parser(__doc__)
    parser.add_argument("--library", choices=["horovod", "mpi4py"], help="default: what is here")
    args = parser.parse_args()
    here = "horovod" if importlib.util.find_spec("horovod") else "mpi4py"
    library = args.library or here
    placement = from_horovod() if library == "horovod" else from_mpi()
    emit(event="placement", host=socket.gethostname(), library=library, **placement)


if __name__ == "__main__":
    main()
