"""torchrun --nnodes 3:4: an instance goes, three train on; another one comes, and four train again.

    python scripts/demos/lose_an_instance.py --steps 1200

Four agents of torchrun on this machine, with one rank each, stand for four instances. One agent and
its rank are killed, as when an instance is lost. The others meet again, and go on from the last
checkpoint of train_torch_ddp.py. A new agent joins. At last one process trains as many steps
without a stop. Rank 0's lines get the seconds since the start:

    {"event": "start", "world_size": 4, ..., "seconds": 9.1}
    {"event": "killed", "seconds": 9.8}
    {"event": "resumed", "step": 200, "seconds": 21.4}
    {"event": "joining", "seconds": 23.0}
    {"event": "compared", "apart": 2.4e-07, "largest": 0.61}

apart: the largest difference of any weight from the one process's; largest: the largest weight.
`--share-store` leaves torchrun 2.13 as it is, and then the three never meet: see SHARE.
"""

import argparse
import itertools
import json
import os
import queue
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from torch.distributed import run as torchrun

from change_world_size import report_difference, train, training_script
from common.arguments import add_flag, number, plain_parser
from common.errors import ScriptError, run_main
from common.report import emit

AGENTS = 4
LEARNING_RATE = 0.003  # small: with more, rounding can grow to 0.3 within 600 steps
KILL_AT, GO_ON_FOR = 200, 100  # steps before the kill; steps of three ranks before another comes
# By default torchrun keeps one store over all its restarts, and there the addresses of the ranks
# that have ended. The new ranks find those, and are refused. 1: a new store for each start.
SHARE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
# A silent agent counts as dead after interval * attempts seconds (by default 15), and the others
# wait for that. last_call: how long they wait for a fourth once three are there.
MEETING = "last_call_timeout=2,keep_alive_interval=2,keep_alive_max_attempt=3"


class Agent:
    """torchrun with one rank, in a process of its own; what they print goes to `lines`.

    It is forked: torch is loaded already, so that it begins at once.
    """

    def __init__(self, port: int, words: list[str], lines: queue.Queue[str]) -> None:
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(writer, 1)
            _run_agent(port, words)
        os.close(writer)
        threading.Thread(target=_read, args=(reader, lines), daemon=True).start()

    def kill(self) -> None:
        """End both. Without its agent a rank lives on, and the others would not notice."""
        children = Path("/proc", str(self.pid), "task").glob("*/children")
        pids = [self.pid, *(int(pid) for path in children for pid in path.read_text().split())]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _run_agent(port: int, words: list[str]) -> None:
    options = ["--nnodes", f"{AGENTS - 1}:{AGENTS}", "--nproc-per-node", "1"]
    options += ["--max-restarts", "5", "--monitor-interval", "0.2", "--rdzv-backend", "c10d"]
    options += ["--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-conf", MEETING]
    options += ["--rdzv-id", "demo", "--local-addr", "127.0.0.1"]
    status = 1
    try:
        torchrun.main([*options, str(training_script()), *words])
        status = 0
    finally:
        os._exit(status)


def _read(reader: int, lines: queue.Queue[str]) -> None:
    with os.fdopen(reader) as pipe:
        for line in pipe:
            lines.put(line)


def pass_on(
    lines: queue.Queue[str], clock: float, patience: float, last: Callable[[dict], bool]
) -> None:
    """Print the ranks' records with their seconds, until one for which `last` is true."""
    until = time.monotonic() + patience
    while True:
        try:
            line = lines.get(timeout=max(0, until - time.monotonic()))
        except queue.Empty:
            raise ScriptError(f"the ranks have not gone on for {patience:g} s") from None
        if line.startswith("{"):
            record = json.loads(line)
            emit(**record, seconds=round(time.monotonic() - clock, 2))
            if last(record):
                return


def after(world_size: int, steps: int) -> Callable[[dict], bool]:
    """Return a test of records: have so many ranks trained for so many steps?"""
    first: list[int] = []
    ranks: list[int] = []

    def last(record: dict) -> bool:
        if record["event"] == "start":
            ranks[:] = [record["world_size"]]
            first.clear()
        if record["event"] != "step" or ranks != [world_size]:
            return False
        first.append(record["step"])
        return record["step"] - first[0] >= steps

    return last


def main() -> None:
    """Lose an agent, train on; win one, train on; compare."""
    parser = plain_parser(__doc__)
    add_flag(parser, "--steps", type=number(int, 600), default=1200, help="in all")
    add_flag(parser, "--global-batch-size", type=number(int, 12), default=48, help="of all ranks")
    add_flag(parser, "--patience", type=number(float, 1), default=300, help="seconds, for a part")
    add_flag(parser, "--share-store", action="store_true", help="as torchrun does by default")
    args = parser.parse_args()
    if args.global_batch_size % 12:
        raise ScriptError("--global-batch-size: no multiple of 3 and 4 ranks")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # else torchrun says that it sets it
    os.environ[SHARE] = "0" if args.share_store else "1"
    with tempfile.TemporaryDirectory() as folder:
        elastic, whole = Path(folder, "elastic"), Path(folder, "whole")
        train_elastically(args, elastic)
        train(1, args.steps, args, whole, LEARNING_RATE)
        report_difference(elastic, whole)


def train_elastically(args: argparse.Namespace, folder: Path) -> None:
    """Train with 4, 3 and 4 ranks to the last step; end all agents."""
    flags = {"global-batch-size": args.global_batch_size, "max-steps": args.steps}
    flags |= {"epochs": 1000, "log-every": 20, "checkpoint-every": 20}
    flags |= {"learning-rate": LEARNING_RATE}
    flags |= {"checkpoint-dir": folder, "save-to": folder}
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    lines: queue.Queue[str] = queue.Queue()
    clock = time.monotonic()
    agents: list[Agent] = []
    try:
        for _ in range(AGENTS):
            agents.append(Agent(port, words, lines))
            time.sleep(0.2)  # the first one hosts the store, so another one is killed
        pass_on(lines, clock, args.patience, after(AGENTS, KILL_AT))
        agents.pop().kill()
        emit(event="killed", seconds=round(time.monotonic() - clock, 2))
        pass_on(lines, clock, args.patience, after(AGENTS - 1, GO_ON_FOR))
        agents.append(Agent(port, words, lines))
        emit(event="joining", seconds=round(time.monotonic() - clock, 2))
        ended = itertools.count(1)  # each rank says its hash at the end
        pass_on(
            lines,
            clock,
            args.patience,
            lambda record: record["event"] == "weights" and next(ended) == AGENTS,
        )
        while agents:
            _, status = os.waitpid(agents[-1].pid, 0)
            agents.pop()
            if status:
                raise ScriptError("an agent failed: its messages are above")
    finally:
        for agent in agents:
            agent.kill()


if __name__ == "__main__":
    run_main(main)
