"""The checks of lesson 03: gradients per second, the load of a server, bounded staleness."""

from __future__ import annotations

import math

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered


@exercise("03.1")
def gradients_per_second(answer) -> str:
    """Cases in which the slowest worker, all workers, or the server's link decide."""
    for compute, transfer in (
        ([0.01, 0.01, 0.01, 0.05], 0.0001),  # a straggler
        ([0.01] * 8, 0.02),  # the server's link
        ([0.1, 0.2], 0.01),
        ([0.3], 0.002),
    ):
        _check_rates(answer, compute, transfer)
    return "Sync waits for the slowest, async for the server's link, and a ring shares the links."


def _check_rates(answer, compute: list[float], transfer: float) -> None:
    n, slowest = len(compute), max(compute)
    by_workers = sum(1 / (seconds + 2 * transfer) for seconds in compute)
    expected = {
        "sync": n / (slowest + 2 * n * transfer),
        "async": min(by_workers, 1 / transfer),
        "ring": n / (slowest + 2 * (n - 1) / n * transfer),
    }
    case = f"compute {compute}, transfer {transfer}"
    returned = answer(list(compute), transfer)
    if not isinstance(returned, dict) or set(returned) != set(expected):
        raise Wrong(f'{case}: {returned!r} has not the keys "sync", "async" and "ring".')
    mistakes = {
        "sync": {
            n / (sum(compute) / n + 2 * n * transfer): "the server waits for the slowest worker, "
            "not for the mean",
            n / (slowest + 2 * transfer): "all workers' messages pass the server's link, one after "
            "the other",
            n / (slowest + n * transfer): "weights go out, and then gradients come in: both count",
            1 / (slowest + 2 * n * transfer): "that is steps per second; a step has a gradient of "
            "each worker",
        },
        "async": {
            by_workers: "the server's link carries at most 1 / transfer messages a second each way",
            1 / (2 * transfer): "out and in are two directions of the link, and work at once",
            1 / transfer: "the workers don't deliver as many as the link could carry",
            sum(1 / seconds for seconds in compute): "a worker also waits for its two messages",
        },
        "ring": {
            n / (slowest + 2 * (n - 1) * transfer): "in a ring a message is 1 / N of the weights",
            n
            / (sum(compute) / n + 2 * (n - 1) / n * transfer): "a ring waits for the slowest, too",
        },
    }
    for name, right in expected.items():
        if math.isclose(returned[name], right, rel_tol=1e-6):
            continue
        why = next(
            (text for value, text in mistakes[name].items() if math.isclose(returned[name], value)),
            "who waits for whom, and how often do the weights cross the busiest link?",
        )
        raise Wrong(f"{case}: {name} {returned[name]:.4g} a second, and it is {right:.4g}: {why}")


@exercise("03.2")
def server_load(answer) -> str:
    """Sizes that divide evenly and sizes that do not."""
    for parameters in (10, 14_186, 25_557_032):
        for workers in (1, 3, 8):
            for servers in (1, 2, 3, 7):
                _check_load(answer, parameters, workers, servers)
    return "More workers load every server; more servers share the bytes and add connections."


def _check_load(answer, parameters: int, workers: int, servers: int) -> None:
    case = f"{parameters} weights, {workers} workers, {servers} servers"
    returned = answer(parameters, workers, servers)
    if not (isinstance(returned, tuple | list) and len(returned) == 2):
        raise Wrong(f"You returned {returned!r}; return two numbers: (bytes, connections).")
    size, connections = returned
    if connections != workers * servers:
        raise Wrong(
            f"{case}: you count {connections} connections. Every worker needs some weights of "
            "every server, so each talks to each."
        )
    fullest = -(-parameters // servers)
    expected = 8 * fullest * workers
    if size == expected / 2:
        raise Wrong(f"{case}: {size} bytes are one way. Weights go out and gradients come in.")
    if size == expected / workers and workers > 1:
        raise Wrong(f"{case}: {size} bytes are those of one worker. The server serves them all.")
    if size == 8 * parameters * workers and servers > 1:
        raise Wrong(f"{case}: {size} bytes pass all servers together. Each has a part of them.")
    if size != expected:
        raise Wrong(
            f"{case}: you say {size} bytes, and it is {expected}. The fullest server has {fullest} "
            "weights: whole ones, rounded up."
        )


@exercise("03.3", seconds=180)
def serve_bounded(answer) -> str:
    """Run the answer as the server of real workers, of which one is slow; read what it did."""
    pauses, steps = [0.002, 0.002, 0.06], 5
    with start_ranks(len(pauses) + 1) as ranks:
        ranks.run("parallel.practice_server:warm_up", timeout=90)
        for ahead in (1, 3):
            result = _served(ranks, answer, pauses, steps, ahead)
            _check_order(result["log"], len(pauses), ahead)
            if not math.isclose(result["weights"][0], result["expected"][0], rel_tol=1e-4):
                raise Wrong(
                    f"s = {ahead}: the weights are {result['weights'][0]:g} and should be "
                    f"{result['expected'][0]:g}: apply each gradient once, whole, as it comes."
                )
    return "On real ranks nobody is more than s steps ahead, and nobody waits without need."


def _served(ranks, answer, pauses: list[float], steps: int, ahead: int) -> dict:
    call = "parallel.practice_server:call"
    try:
        return ranks.run(call, answer, pauses, steps, ahead, timeout=15)[0]
    except RankFailed as error:
        if unanswered("03.3") in str(error):
            raise
        if "had not returned" in str(error):
            raise Wrong(
                f"s = {ahead}: the server and its workers wait for each other forever. A push of "
                "the slowest worker may release others, which pushed long ago: look at all who "
                "wait. And at the end whoever still waits needs a last answer."
            ) from error
        raise Wrong(f"A rank stopped:\n{error}") from error


def _check_order(log: list[tuple[str, int]], workers: int, ahead: int) -> None:
    """Replay the log: who got weights, how far ahead of the slowest, and who waited."""
    done, waiting = dict.fromkeys(range(1, workers + 1), 0), set(range(1, workers + 1))
    over = False  # no more gradients are wanted
    for kind, worker in log:
        lead = {w: done[w] - min(done.values()) for w in waiting}
        if kind == "push":
            may_go_on = [w for w in sorted(lead) if lead[w] <= ahead]
            if may_go_on and not over:
                raise Wrong(
                    f"s = {ahead}: worker {may_go_on[0]} is {lead[may_go_on[0]]} steps ahead of "
                    "the slowest, and waits all the same, while the server takes another gradient. "
                    "Answer all who may go on first."
                )
            done[worker] += 1
            waiting.add(worker)
            continue
        over = over or kind == "stop"
        if kind == "answer" and lead.get(worker, 0) > ahead:
            raise Wrong(
                f"s = {ahead}: worker {worker} gets new weights although it is {lead[worker]} "
                "steps ahead of the slowest. Let it wait until the slowest has pushed."
            )
        waiting.discard(worker)
