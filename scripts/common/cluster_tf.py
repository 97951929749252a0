"""The hosts of a parameter-server job: who is who, and how each one comes to an end.

The launcher (SageMaker's TensorFlow toolkit, or common/launch_ps.py on one machine) starts the
parameter servers itself and stops them when the master's port closes. It knows nothing of the
workers' servers, which serve for ever unless the script ends them. So both sides look at each
other's port, which works across hosts without any shared file system:

- a worker ends when nothing listens on the coordinator's port any more, whether the coordinator
  finished or died;
- the coordinator ends with an error when a worker or parameter server is gone. Left alone it
  would wait for ever for that one to come back.
"""

import json
import os
import sys
import threading
import time
from dataclasses import dataclass

from common.addresses import listens
from common.data import CLASSES
from common.errors import ScriptError
from common.keras2 import tf
from common.model_tf import accuracy
from common.report import emit

_POLL_SECONDS = 1.0
_GONE_AFTER = 3  # looks in a row that find nobody: one alone may be a hiccup of the network


@dataclass(frozen=True)
class Cluster:
    """Addresses (host:port) by role (chief, ps, worker), and this process's own role."""

    addresses: dict[str, list[str]]
    task_type: str
    task_index: int

    @property
    def workers(self) -> int:
        """How many workers train."""
        return len(self.addresses["worker"])

    def resolver(self):
        """Return what tf.distribute.ParameterServerStrategy takes."""
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(self.addresses),
            task_type=self.task_type,
            task_id=self.task_index,
            rpc_layer="grpc",
        )


def read_cluster() -> Cluster:
    """Read TF_CONFIG. SageMaker writes TensorFlow 1's name `master`; TensorFlow 2 says `chief`.

    Raises:
        ScriptError: there is no cluster, or one without a worker or a parameter server. With
            one instance SageMaker starts the script so; training alone then would look like
            parameter-server training and be none.
    """
    try:
        config = json.loads(os.environ.get("TF_CONFIG", "{}"))
        addresses = {
            "chief" if role == "master" else role: list(hosts)
            for role, hosts in config.get("cluster", {}).items()
        }
        task_type, index = config["task"]["type"], int(config["task"]["index"])
    except KeyError:
        addresses, task_type, index = {}, "", 0
    except (ValueError, AttributeError, TypeError) as error:
        raise ScriptError(f"TF_CONFIG is not the JSON object expected: {error}") from error
    missing = [role for role in ("chief", "worker", "ps") if not addresses.get(role)]
    if missing:
        raise ScriptError(
            f"TF_CONFIG names no {', no '.join(missing)}: nothing to train with a parameter "
            "server. On SageMaker ask for instance_count of 2 or more and distribution="
            '{"parameter_server": {"enabled": True}}; on this machine start the script with '
            "`python scripts/common/launch_ps.py`; or train alone with train_tf.py"
        )
    task_type = "chief" if task_type == "master" else task_type
    if task_type not in ("chief", "worker"):
        raise ScriptError(
            f"TF_CONFIG gives this script the task {task_type!r}, not chief or worker"
        )
    return Cluster(addresses, task_type, index)


def report_servers(variables: list) -> None:
    """Print for each variable which parameter server holds it, and its bytes."""
    for variable in variables:
        server = tf.DeviceSpec.from_string(variable.device)
        size = variable.shape.num_elements() * variable.dtype.size
        emit(event="variable", name=variable.name, bytes=size, ps=server.task)


def report_classes(model, images, labels) -> None:
    """Print the model's accuracy on the test images of each class, 0 to 1."""
    by_class = [accuracy(model, images[labels == c], labels[labels == c]) for c in range(CLASSES)]
    emit(event="classes", accuracy=[round(one, 4) for one in by_class])


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def serve_until_coordinator_ends(cluster: Cluster, timeout: int) -> None:
    """Be a worker: run what the coordinator sends; return when the coordinator has ended.

    Raises:
        ScriptError: no coordinator appeared within `timeout` seconds.
    """
    tf.distribute.Server(
        tf.train.ClusterSpec(cluster.addresses),
        job_name="worker",
        task_index=cluster.task_index,
        protocol="grpc",
        # Operations that wait for another host hold a thread each, also on a single core.
        config=tf.compat.v1.ConfigProto(inter_op_parallelism_threads=cluster.workers + 2),
        start=True,
    )
    (coordinator,) = cluster.addresses["chief"]
    deadline = time.monotonic() + timeout
    while not listens(coordinator, timeout=2):
        if time.monotonic() > deadline:
            raise ScriptError(
                f"no coordinator listened on {coordinator} within {timeout} s. See the log of "
                "that host; a slow start needs a larger --cluster-timeout"
            )
        time.sleep(_POLL_SECONDS)
    misses = 0
    while misses < _GONE_AFTER:
        time.sleep(_POLL_SECONDS)
        misses = 0 if listens(coordinator, timeout=2) else misses + 1
    _say(f"worker {cluster.task_index}: the coordinator at {coordinator} has ended; so do I")


def watch_hosts(cluster: Cluster, timeout: int) -> threading.Event:
    """Be the coordinator: end this process with status 1 when another host is gone.

    A thread looks at every worker and parameter server until the returned event is set. One
    that doesn't appear within `timeout` seconds, or is gone after it appeared, ends the process
    at once: the main thread may be inside TensorFlow, waiting for that host.
    """
    finished = threading.Event()
    threading.Thread(target=_watch, args=(cluster, timeout, finished), daemon=True).start()
    return finished


def report_updates(report, updates: list, workers: int) -> list[int]:
    """Wait for the scheduled updates; report each `workers` of them as one step.

    Returns:
        the staleness of each: how many updates of other workers reached the model between this
        one's reading of the weights and its writing.
    """
    staleness = []
    for first in range(0, len(updates), workers):
        results = [update.fetch() for update in updates[first : first + workers]]
        report.step(sum(float(loss) for loss, _ in results) / workers)
        staleness += [int(stale) for _, stale in results]
    return staleness


def mean_of(staleness: list[int]) -> float | None:
    """Return the mean, for the report; None when an epoch's updates were all an earlier run's."""
    return round(sum(staleness) / len(staleness), 3) if staleness else None


def _watch(cluster: Cluster, timeout: int, finished: threading.Event) -> None:
    others = cluster.addresses["worker"] + cluster.addresses["ps"]
    deadline = time.monotonic() + timeout
    seen: set[str] = set()
    misses = dict.fromkeys(others, 0)
    while not finished.wait(_POLL_SECONDS):
        for address in others:
            if listens(address, timeout=2):
                seen.add(address)
                misses[address] = 0
            else:
                misses[address] += 1
        gone = [a for a in others if a in seen and misses[a] >= _GONE_AFTER]
        late = [a for a in others if a not in seen and time.monotonic() > deadline]
        if (gone or late) and not finished.is_set():
            what = "is gone" if gone else f"didn't appear within {timeout} s"
            _say(f"error: {', '.join(gone or late)} {what}. See the log of that host")
            os._exit(1)
