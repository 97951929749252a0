"""The checks of lesson 12's exercises."""

from __future__ import annotations

import math

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered


@exercise("12.1", seconds=180)
def accumulate(answer) -> str:
    """Run the answer on real ranks; count DDP's messages; compare with one large batch."""
    for world_size, parts in ((2, 4), (3, 2)):
        with start_ranks(world_size) as ranks:
            results = _on_ranks(ranks, "12.1", "call_accumulate", answer, parts)
            for rank, result in enumerate(results):
                _check_accumulated(result, f"{world_size} ranks, {parts} batches: rank {rank}")
    return "The weights of one large batch, and one message, on 2 and 3 real ranks."


def _on_ranks(ranks, number: str, name: str, answer, count: int) -> list[dict]:
    try:
        return ranks.run(f"less_often.practice:{name}", answer, count, timeout=20)
    except RankFailed as error:
        if unanswered(number) in str(error):
            raise
        raise Wrong(f"A rank stopped:\n{error}") from error


def _check_accumulated(result: dict, at: str) -> None:
    if result["updates"] != 1:
        raise Wrong(
            f"{at}: the optimizer took {result['updates']} steps. Add up the gradients of all "
            "batches, then call optimizer.step() once."
        )
    if result["sends"] == 0:
        raise Wrong(
            f"{at}: nothing was averaged, so each rank has weights of its own. The last backward() "
            "must be outside of no_sync()."
        )
    if _close(result, "weights", "expected_of_the_sum"):
        raise Wrong(
            f"{at}: the step is too large: a sum of means. Divide each loss by the batches."
        )
    if result["sends"] > 1:
        raise Wrong(
            f"{at}: DDP averaged {result['sends']} times. Compute all batches but the last, "
            "forward and backward, inside `with parallel.no_sync():`."
        )
    if not _close(result, "weights", "expected"):
        raise Wrong(
            f"{at}: other weights than those of one large batch. Does every batch count, and "
            "equally much?"
        )


LINKS = {  # Mbit/s; of each way bytes per step, seconds of a step on a fast link, steps to the goal
    "a slow link": (
        20,
        {
            "DDP": (472_000, 0.0056, 105),
            "top-k": (11_000, 0.0065, 150),
            "alone": (0, 0.0032, 160),
        },
    ),
    "a larger model": (
        200,
        {"DDP": (5e6, 0.15, 100), "local SGD": (312_500, 0.15, 110), "alone": (0, 0.15, 160)},
    ),
    "a slow and long step": (
        20,
        {"DDP": (5e6, 0.21, 100), "top-k": (1e5, 0.23, 120), "alone": (0, 0.2, 190)},
    ),
    "compression that costs more than it saves": (
        1000,
        {"DDP": (5e6, 0.05, 100), "PowerSGD": (4e5, 0.11, 100), "alone": (0, 0.05, 190)},
    ),
}


@exercise("12.2")
def plan(answer) -> str:
    """Ask for r and the fastest way on four links; name the usual mistakes."""
    for at, (mbit, ways) in LINKS.items():
        returned = answer(mbit, dict(ways))
        if not (isinstance(returned, tuple | list) and len(returned) == 2):
            raise Wrong(f"{returned!r} are not two values. Return (r, best).")
        _check_plan(*returned, mbit, ways, at)
    return "r and the fastest way, on four links; once it was one rank alone."


def _check_plan(r: float, best: str, mbit: float, ways: dict, at: str) -> None:
    sent, fast, _ = ways["DDP"]
    alone, exchange = ways["alone"][1], 8 * sent / (mbit * 1e6)
    right = (fast + exchange) / alone - 1
    if math.isclose(r, (fast + exchange / 8) / alone - 1, rel_tol=0.01):
        raise Wrong(f"{at}: r is too small: the link is given in bits, what is sent in bytes.")
    if math.isclose(r, 1 / right, rel_tol=0.01):
        raise Wrong(f"{at}: r is upside down: exchange / compute.")
    if math.isclose(r, 1 + right, rel_tol=0.001):
        raise Wrong(f"{at}: that is DDP's step over alone's, 1 + r. r counts only what is longer.")
    if not math.isclose(r, right, rel_tol=0.001):
        raise Wrong(
            f"{at}: r is {right:.4g}, not {r:.4g}: (DDP's step - alone's) / alone's, where DDP's "
            "step is its own on the fast link, plus 8 * bytes / (mbit * 1e6)."
        )
    seconds = {
        way: steps * (fast + 8 * sent / (mbit * 1e6)) for way, (sent, fast, steps) in ways.items()
    }
    fastest = min(seconds, key=lambda way: seconds[way])
    if best != fastest:
        raise Wrong(
            f"{at}: {fastest} gets to the goal first, not {best}. Compare steps x (its own step on "
            "the fast link + exchange) of all ways; one rank alone is one of them."
        )


def _close(result: dict, name: str, other: str) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6)
        for a, b in zip(result[name], result[other], strict=True)
    )


@exercise("12.3")
def compress(answer) -> str:
    """Compress gradients, step by step: what is sent and what is left out are all there is."""
    import torch

    gradients = [
        torch.tensor(values, dtype=torch.float64)
        for values in ([3, -5, 1, 0.5], [3, 0.25, 1, 0.5], [0.75, 0.25, 1.5, 0.5])
    ]
    left_out, expected_left = torch.zeros(2, 4, dtype=torch.float64)
    for step, gradient in enumerate(gradients):
        waiting = expected_left + gradient
        places, values = _answered(answer, gradient.clone(), left_out, step)
        _check_choice(places, values, gradient, waiting, step)
        expected_left = waiting.index_fill(0, places, 0)
        _check_left_out(left_out, expected_left, waiting, step)
    return "What was sent and what is left out are together all gradients, after every step."


def _answered(answer, gradient, left_out, step: int) -> tuple:
    import torch

    returned = answer(gradient, left_out, 2)
    if not (isinstance(returned, tuple | list) and len(returned) == 2):
        raise Wrong(f"{returned!r} is not two tensors. Return (places, values).")
    places, values = map(torch.as_tensor, returned)
    if len(places) != 2 or len(values) != 2 or places.is_floating_point():
        raise Wrong(
            f"step {step}: {len(places)} places and {len(values)} values, where `count` is 2. "
            "Places are whole numbers: topk(...).indices."
        )
    return places.long(), values.to(torch.float64)


def _check_choice(places, values, gradient, waiting, step: int) -> None:
    import torch

    at = f"step {step}, {[round(value, 2) for value in waiting.tolist()]} waiting"
    chosen, right = sorted(places.tolist()), sorted(waiting.abs().topk(2).indices.tolist())
    if chosen == right:
        if torch.allclose(values, waiting[places]):
            return
        if torch.allclose(values, waiting[places].abs()):
            raise Wrong(f"{at}: the values have lost their signs.")
        if torch.allclose(values, gradient[places]):
            raise Wrong(f"{at}: send what has waited, too: left_out plus the gradient.")
        raise Wrong(f"{at}: the values are not those of the places {chosen}.")
    if chosen == sorted(waiting.topk(2).indices.tolist()):
        raise Wrong(f"{at}: -5 is larger in size than 3: choose by abs().")
    if chosen == sorted(gradient.abs().topk(2).indices.tolist()):
        raise Wrong(f"{at}: add left_out before you choose: a small number that waits grows.")
    raise Wrong(f"{at}: the two largest in size are at {right}, you sent those at {chosen}.")


def _check_left_out(left_out, expected, waiting, step: int) -> None:
    import torch

    if torch.allclose(left_out, expected):
        return
    if torch.allclose(left_out, waiting):
        raise Wrong(
            f"step {step}: what was sent still waits, and would be sent again: set it to 0."
        )
    if not left_out.any():
        raise Wrong(
            f"step {step}: `left_out` is still zeros, so what was not sent is lost. Change it in "
            "place."
        )
    raise Wrong(
        f"step {step}: left_out is {left_out.tolist()}; waiting are {expected.tolist()}. Is it "
        "left_out plus the gradient, with zeros where something was sent, in place?"
    )
