"""A model on a parameter server, its checkpoint in the coordinator's folder `kept`.

python checkpoint_on_servers.py PS_PORT WORKER_PORT ps|worker|chief
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from common.checkpoint_tf import Checkpoints
from common.keras2 import tf
from common.model_tf import build_model, build_optimizer
from common.report import Report


class Args:
    """The arguments that checkpoints need."""

    global_batch_size = learning_rate = seed = hidden_units = log_every = 0
    checkpoint_every, checkpoint_dir = 10, Path("kept")


def trained(strategy: tf.distribute.ParameterServerStrategy, steps: int) -> list:
    """Weights before and after `steps` steps that add 1."""
    with strategy.scope():
        model = build_model((8, 8, 1), 4)
        optimizer = build_optimizer(0.1, model)
    print(model.variables[0].device, flush=True)
    report = Report(Args, model.get_weights())
    kept = Checkpoints(Args, model, optimizer, report)
    found = model.get_weights()
    for _ in kept.batches(range(1000), 1, steps):
        report.step(0.0)
        for variable in model.variables:
            variable.assign_add(tf.ones_like(variable))
    return [*found, *model.get_weights()]


ps, worker, task = sys.argv[1:]
cluster = tf.train.ClusterSpec({"ps": [f"127.0.0.1:{ps}"], "worker": [f"127.0.0.1:{worker}"]})
if task != "chief":
    tf.distribute.Server(cluster, job_name=task, task_index=0, protocol="grpc").join()
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)  # connects
first, again = trained(strategy, 10), trained(strategy, 10)
half = len(first) // 2
for one, other in zip(first[half:], again[:half], strict=True):
    assert (one == other).all(), "the resumed weights are others"
sys.stdout.flush()
os._exit(0)  # the coordinator's threads would wait for the servers
