"""What recording costs a step: python tests/workshop/diagnosis/overhead.py [ROUNDS]

Two ranks train with DDP, again and again, in a random order of four ways: without recording, the
same once more (what the noise is), with torch's flight recorder, and with that and the recorder's
thread. Compared is the processor's time per step, of all threads of both ranks: other programs
disturb it far less than they disturb the clock's. All blocks are forks of one process, which has
imported torch.

The thread works by the clock, not by the step: on a busy machine, where steps take long, its part
of the processor's time is larger. So its own share of the clock's time is printed, too: that is
what it takes at most of a machine whose cores are the ranks'.
"""

import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from workshop.launch.recording import ENTRIES, RECORDER

WARM_UP, STEPS = 5, 60
WAYS = ("off", "off again", "flight recorder", "all")


def block(way: str, folder: str) -> tuple[float, float, float]:
    """Seconds of the processor per step, both ranks together; shares of the thread and the hook."""
    pipes = []
    for rank in range(2):
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                os.write(write, " ".join(map(str, train(rank, way, folder))).encode())
            finally:
                os._exit(0)
        os.close(write)
        pipes.append(os.fdopen(read))
    answers = [[float(word) for word in pipe.read().split()] for pipe in pipes]
    for pipe in pipes:
        pipe.close()
        os.wait()
    seconds, thread, hook = zip(*answers, strict=True)
    return sum(seconds), statistics.mean(thread), statistics.mean(hook)


def train(rank: int, way: str, folder: str) -> tuple[float, float, float]:
    """One rank's seconds per step; what the recorder's thread and its hook took of the time."""
    hooked = [0.0]
    os.environ["TORCH_FR_BUFFER_SIZE"] = str(0 if way.startswith("off") else ENTRIES)
    if way == "all":
        sys.path.append(str(RECORDER))
        import workshop_recorder

        workshop_recorder.Recorder.stepped = timed(workshop_recorder.Recorder.stepped, hooked)
        workshop_recorder.start(os.path.dirname(folder))
    torch.set_num_threads(1)
    store = dist.FileStore(folder, 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    model = DistributedDataParallel(nn.Sequential(*(nn.Linear(512, 512) for _ in range(3))))
    optimizer, batch = torch.optim.SGD(model.parameters(), 0.01), torch.randn(64, 512)
    for step in range(WARM_UP + STEPS):
        if step == WARM_UP:
            began, clock, thread = time.process_time(), time.perf_counter(), recorder_seconds()
            hooked[0] = 0.0
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    cpu, clock = time.process_time() - began, time.perf_counter() - clock
    return cpu / STEPS, (recorder_seconds() - thread) / clock, hooked[0] / clock


def timed(function: Callable[..., object], seconds: list[float]) -> Callable[..., None]:
    """function, which adds the seconds that it takes to seconds[0]."""

    def call(*arguments: object) -> None:
        began = time.perf_counter()
        function(*arguments)
        seconds[0] += time.perf_counter() - began

    return call


def recorder_seconds() -> float:
    """The processor's seconds of the recorder's thread, if there is one."""
    names = {thread.name: thread.ident for thread in threading.enumerate()}
    ident = names.get("workshop-recorder")
    return time.clock_gettime(time.pthread_getcpuclockid(ident)) if ident else 0.0


def interval(values: list[float], repeats: int = 4000) -> tuple[float, float, float]:
    """The median, and its bootstrapped 95 % interval."""
    medians = sorted(
        statistics.median(random.choices(values, k=len(values))) for _ in range(repeats)
    )
    return statistics.median(values), medians[repeats // 40], medians[-repeats // 40]


def main() -> None:
    """Compare each round's blocks; print medians and their intervals."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 30
    shares: list[tuple[float, ...]] = []
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in random.sample(WAYS, len(WAYS)):
            with tempfile.TemporaryDirectory() as folder:
                cpu, *share = block(way, f"{folder}/store")
            seconds[way].append(cpu)
            shares += [tuple(share)] if way == "all" else []
    print(f"off: {1000 * statistics.median(seconds['off']):.2f} ms of the processor per step")
    for way in WAYS[1:]:
        ratios = [b / a - 1 for a, b in zip(seconds["off"], seconds[way], strict=True)]
        print(way, "{:+.2%}, 95 % interval {:+.2%} to {:+.2%}".format(*interval(ratios)))
    for name, values in zip(("thread", "hook"), zip(*shares, strict=True), strict=True):
        print(name, "{:.3%} of the time, {:.3%} to {:.3%}".format(*interval(list(values))))


if __name__ == "__main__":
    main()
