"""The workers of a MultiWorkerMirroredStrategy: who this process is, and what all do together.

Here a rank is a process, as everywhere in these scripts. On a CPU it holds one replica of the
model; on an instance with GPUs it holds one replica a GPU.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from common.addresses import listens
from common.arguments import threads_per_rank
from common.errors import ScriptError
from common.keras2 import tf

_LEAVE_SECONDS = 8.0  # TensorFlow calls a silent worker lost after 10


def prepare(args) -> int:
    """Set seed, threads and GPUs of this process; return its rank. Call it first.

    It takes all GPUs of its host, and with several workers on one host an equal part.
    """
    addresses, rank = read_workers()
    hosts = [address.rpartition(":")[0] for address in addresses]
    here = [index for index, host in enumerate(hosts) if host == hosts[rank]]
    threads = threads_per_rank(args.threads_per_rank, len(here))
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    # Operations that wait for another worker hold a thread each, also on a single core.
    tf.config.threading.set_inter_op_parallelism_threads(max(threads, len(addresses) + 1))
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and len(here) > 1:
        share = max(1, len(gpus) // len(here))
        first = here.index(rank) * share % len(gpus)
        tf.config.set_visible_devices(gpus[first : first + share], "GPU")
    tf.keras.utils.set_random_seed(args.seed)
    return rank


@contextmanager
def saving_folder(folder: Path, rank: int) -> Iterator[Path]:
    """Give rank 0 `folder`, and every other rank a folder that is thrown away.

    All ranks must save: TensorFlow may need values of every rank to write a model. If all wrote
    to one place they would overwrite each other.
    """
    if rank == 0:
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="not-rank-0-") as scratch:
        yield Path(scratch)


def read_workers() -> tuple[list[str], int]:
    """Read TF_CONFIG: the workers' addresses, and which of them this process is.

    Raises:
        ScriptError: it is no JSON object, or it is a parameter server's.
    """
    text = os.environ.get("TF_CONFIG", "{}")
    try:
        config = json.loads(text)
        cluster = config.get("cluster") or {"worker": ["localhost:0"]}
        task = config.get("task") or {"type": "worker", "index": 0}
        if set(cluster) == {"worker"} and task["type"] == "worker":
            return list(cluster["worker"]), range(len(cluster["worker"]))[int(task["index"])]
    except (ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
        raise ScriptError(f"TF_CONFIG is not the JSON object expected: {error!r}") from error
    raise ScriptError(
        f"TF_CONFIG names {', '.join(sorted(cluster))}; MultiWorkerMirroredStrategy wants workers "
        'only. On SageMaker use distribution={"multi_worker_mirrored_strategy": {"enabled": '
        "True}}; on this machine start the script with `python scripts/common/launch_workers.py`"
    )


def sharded_by_element() -> tf.data.Options:
    """Return the option by which each replica takes its own part of every global batch.

    DATA: all workers read everything, and each keeps its part. FILE would give each worker
    whole files, OFF everything; AUTO, the default, tries FILE and falls back to DATA.
    """
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return options


def mean_over_replicas(values: list) -> list:
    """Return the mean of each value over all replicas. Only inside what the strategy runs."""
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.MEAN, values)


def broadcast(strategy, variables: list) -> None:
    """Give every rank rank 0's values of these variables. Every rank must call it.

    The strategy has no broadcast of its own: all replicas add up, and all but the first add zeros.
    """

    @tf.function
    def add_up(values):
        replica = tf.distribute.get_replica_context()
        first = tf.equal(replica.replica_id_in_sync_group, 0)
        own = tf.where(first, values, tf.zeros_like(values))
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, own)

    # All in one vector; float64 holds every float32, and every count up to 2 ** 53.
    flat = np.concatenate([np.ravel(one.numpy()).astype(np.float64) for one in variables])
    sums = strategy.run(add_up, args=(tf.constant(flat),))
    sums = strategy.experimental_local_results(sums)[0].numpy()
    ends = np.cumsum([one.shape.num_elements() for one in variables])
    for variable, value in zip(variables, np.split(sums, ends[:-1]), strict=True):
        variable.assign(value.reshape(variable.shape).astype(variable.dtype.as_numpy_dtype))


def leave(strategy) -> None:
    """Wait until every rank has come here; rank 0 goes last.

    A rank that ends while others work counts as lost for them. Rank 0's process also keeps the
    list of who is there: ranks that outlive it report that as an error in their last second.
    """

    @tf.function
    def meet():
        return mean_over_replicas([tf.constant(1.0)])

    strategy.run(meet)
    addresses, rank = read_workers()
    deadline = time.monotonic() + _LEAVE_SECONDS
    others = addresses[1:] if rank == 0 else []
    while any(listens(one, timeout=1) for one in others) and time.monotonic() < deadline:
        time.sleep(0.05)
