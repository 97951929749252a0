"""Train a number of steps whenever asked to, and answer with the seconds: for fair comparisons.

    python scripts/demos/timed_steps.py --socket PATH --kind first
    mpirun -np 2 python scripts/demos/timed_steps.py --socket PATH --kind ranks --together

It builds the model, trains two steps to have everything compiled, and reports at the Unix
socket. Then, for each line with a number that it reads there, it trains so many steps and
answers with the seconds. workshop/measure/interleaved.py is the other side: it asks several such
processes alternately.
"""

import json
import os
import socket
import time
from collections.abc import Callable

import numpy as np

from common.arguments import parser_for
from common.data import load_channel
from common.errors import run_main


def tensorflow_step(args, images: np.ndarray, labels: np.ndarray) -> tuple[int, Callable]:
    """Return the rank and a function that trains one step, with Horovod if --together."""
    from common.keras2 import tf  # before Horovod

    # isort: split
    from common.model_tf import build_model, build_optimizer, mean_loss, prepare

    rank = 0
    if args.together:
        import horovod.tensorflow as hvd

        hvd.init()
        rank = hvd.rank()
    prepare(args)
    model = build_model(images.shape[1:], args.hidden_units)
    optimizer = build_optimizer(args.learning_rate, model)
    batch = tf.constant(images), tf.constant(labels)

    @tf.function(autograph=False)  # Horovod's code needs no conversion: a second or two
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = mean_loss(model, images, labels)
        if args.together:
            tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return rank, lambda: float(train_step(*batch))


def torch_step(args, images: np.ndarray, labels: np.ndarray) -> tuple[int, Callable]:
    """The same in PyTorch, with DistributedDataParallel if --together."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from common.model_torch import Classifier, prepare
    from common.ranks_torch import init_distributed

    rank, device = 0, prepare(args)
    model = Classifier(images.shape[1:], args.hidden_units).to(device)
    if args.together:
        init_distributed()
        rank, model = dist.get_rank(), DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    batch = torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)

    def train_step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()

    return rank, train_step


def main() -> None:
    """Build, warm up, then train whenever asked to, until the connection is closed."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("--socket", required=True, help="the Unix socket to report at")
    parser.add_argument("--kind", required=True, help="the name to report with")
    parser.add_argument("--together", action="store_true", help="average gradients with the others")
    parser.add_argument("--library", choices=["tensorflow", "torch"], default="tensorflow")
    args = parser.parse_args()
    images, labels = load_channel(args.training)
    rows = np.arange(args.global_batch_size) % len(labels)  # the same images again, if need be
    make = tensorflow_step if args.library == "tensorflow" else torch_step
    rank, train_step = make(args, images[rows], labels[rows])
    for _ in range(2):
        train_step()

    with socket.socket(socket.AF_UNIX) as line:
        line.connect(args.socket)
        talk = line.makefile("rw")

        def say(**record) -> None:
            talk.write(json.dumps(record) + "\n")
            talk.flush()

        say(kind=args.kind, rank=rank, pid=os.getpid())
        for asked in talk:
            began = time.perf_counter()
            for _ in range(int(asked)):
                train_step()
            say(seconds=time.perf_counter() - began)
    os._exit(0)  # no orderly shutdown: the other ranks may be paused or gone


if __name__ == "__main__":
    run_main(main)
