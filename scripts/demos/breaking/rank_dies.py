"""A rank is killed in the middle of training, as Linux does when memory runs out."""

import os
import signal

from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from breaking.parts import batches, classifier, sgd, start
from common.ranks_torch import cleanup
from common.report import emit

STEPS, FATAL_STEP = 10, 5


def train(args) -> None:
    """Train a few steps. Rank 1 is killed at one of them, unless torchrun began anew."""
    rank, world_size = start(args)
    model = DistributedDataParallel(classifier(args))
    optimizer = sgd(model, args.learning_rate)
    # torchrun counts how often it has started the ranks (--max-restarts); mpirun never restarts.
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))

    for step, (images, labels) in enumerate(batches(args, rank, world_size, STEPS), start=1):
        if step == FATAL_STEP and rank == 1 and restarts == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    emit(event="end", rank=rank, step=step, restarts=restarts)
    cleanup()
