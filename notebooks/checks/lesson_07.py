"""Checks of lesson 07's exercises."""

from __future__ import annotations

import math

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered
from workshop.measure.alpha_beta import Link

P4D = {
    "instance_type": "ml.p4d.24xlarge",
    "instances": 2,
    "gpus": 8,
    "framework": "pytorch",
    "version": (2, 2, 0),
    "own_groups": False,
}
G5 = P4D | {"instance_type": "ml.g5.xlarge", "gpus": 1}
CPU = P4D | {"instance_type": "ml.c5.2xlarge", "gpus": 0}
# What differs from a job, the answer, and why.
BACKENDS = [
    (P4D, "smddp", "p4d, PyTorch 2.2.0 and no groups: SMDDP can run."),
    (P4D | {"version": (2, 5, 1)}, "smddp", "2.5.1 is the last image with SMDDP."),
    (P4D | {"instance_type": "ml.p4de.24xlarge"}, "smddp", "p4de has SMDDP, too."),
    (P4D | {"version": (2, 6, 0)}, "nccl", "No image after PyTorch 2.5.1 has SMDDP."),
    (P4D | {"version": (2, 10, 0)}, "nccl", "2.10 is newer than 2.5: compare tuples, not texts."),
    (P4D | {"instance_type": "ml.p5.48xlarge"}, "nccl", "SMDDP does not run on P5."),
    (G5, "nccl", "SMDDP runs on p4d and p4de only."),
    (P4D | {"own_groups": True}, "nccl", "SMDDP has no new_group()."),
    (
        P4D | {"framework": "tensorflow", "version": (2, 11, 0)},
        "nccl",
        "For TensorFlow SMDDP is deprecated, and never supported Keras.",
    ),
    (CPU, "gloo", "Neither SMDDP nor NCCL runs without GPUs."),
    (CPU | {"instances": 1}, "none", "One rank has nobody to average with."),
    (G5 | {"instances": 1}, "none", "One rank has nobody to average with."),
    (P4D | {"instances": 1, "own_groups": True}, "nccl", "Eight GPUs are eight ranks."),
]


@exercise("07.1")
def backend(answer) -> str:
    """One job for each condition."""
    for job, right, why in BACKENDS:
        got = answer(dict(job))
        if got != right:
            raise Wrong(f"For {job} you said {got!r}. {why}")
    return "Right for every job. SMDDP is worth a measurement on two types of instance only."


SHAPES = [
    ([(512, 512)], 2),
    ([(512,)], 2),
    ([(64, 32, 3, 3)], 4),
    ([(10, 16)], 2),
    ([(8, 8)], 2),
    ([(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (512, 512), (512,), (10, 512), (10,)], 2),
]


@exercise("07.2")
def powersgd_bytes(answer) -> str:
    """Matrices, a convolution, vectors, and matrices that are too small."""
    for shapes, rank in SHAPES:
        got, right = answer(list(shapes), rank), _powersgd(shapes, rank)
        if got == right:
            continue
        call = f"powersgd_bytes({shapes}, {rank}) is {right}, you said {got!r}."
        if got == right / 4:
            raise Wrong(f"{call} A number has 4 bytes.")
        if got == _powersgd(shapes, rank, always=True):
            raise Wrong(
                f"{call} Vectors travel as they are, and matrices unless twice the numbers of the "
                "thin ones are fewer."
            )
        if len(shapes[0]) > 2:
            raise Wrong(f"{call} All dimensions but the first are the columns.")
        raise Wrong(f"{call} Count rows x r and columns x r, or all numbers.")
    return "Each large matrix became two thin ones: the more rows and columns, the more you save."


def _powersgd(shapes, rank: int, always: bool = False) -> int:
    numbers = 0
    for shape in shapes:
        rows, columns = shape[0], math.prod(shape[1:])
        thin = (rows + columns) * rank
        small = 2 * thin >= rows * columns or len(shape) == 1
        numbers += rows * columns if small and not always else thin
    return 4 * numbers


TRACES = [
    ([("compute", 0, 10), ("all-reduce", 10, 14)], 4),
    ([("compute", 0, 10), ("all-reduce", 4, 14)], 4),
    ([("all-reduce", 2, 6), ("compute", 0, 10)], 0),
    ([("compute", 0, 10), ("all-reduce", 6, 14), ("all-reduce", 8, 15)], 5),
    ([("compute", 0, 4), ("compute", 6, 10), ("all-reduce", 3, 8)], 2),
    ([("compute", 0, 4), ("compute", 2, 10), ("all-reduce", 5, 12)], 2),
    ([("compute", 0, 4), ("all-reduce", 6, 9)], 3),
]


@exercise("07.3")
def exposed_ms(answer) -> str:
    """One bucket, several that overlap, and computing in pieces."""
    for spans, right in TRACES:
        got = answer(list(spans))
        if isinstance(got, int | float) and math.isclose(got, right, abs_tol=1e-9):
            continue
        sent = [(start, end) for kind, start, end in spans if kind == "all-reduce"]
        call = f"exposed_ms({spans}) is {right}, you said {got!r}."
        if got == sum(end - start for start, end in sent):
            raise Wrong(f"{call} That is all of the communication: computing hides some.")
        if len(sent) > 1:
            raise Wrong(f"{call} Two buckets at the same time expose that time once.")
        raise Wrong(f"{call} Count the time in which something is sent and nothing is computed.")
    return "What is left when computing is taken away: this, and waiting, is what a step pays."


LAYERS = [(3.0, 1_000_000)] * 4
UNEVEN = [(1.0, 4_000_000), (2.0, 10), (5.0, 2_000_000), (1.0, 500_000)]
STEPS = [
    (LAYERS, 1e9, 2.0, 8e-6),
    (LAYERS, 1e6, 2.0, 8e-6),
    (LAYERS, 1e6, 0.0, 1e-6),
    (LAYERS, 3e6, 1.0, 2e-6),
    (UNEVEN, 1e6, 0.5, 1e-6),
    (UNEVEN, 4.5e6, 0.5, 1e-6),
]


@exercise("07.4")
def step_ms(answer) -> str:
    """A slow link, a fast one, one bucket, and layers of very different sizes."""
    for layers, limit, alpha, beta in STEPS:
        right, got = _step(layers, limit, alpha, beta), answer(list(layers), limit, alpha, beta)
        if isinstance(got, int | float) and math.isclose(got, right, rel_tol=1e-9):
            continue
        call = f"step_ms({layers}, {limit:g}, {alpha}, {beta}) is {right:g}, you said {got!r}."
        n_bytes, computed = sum(size for _, size in layers), sum(ms for ms, _ in layers)
        if got == _step(layers, limit, alpha, beta, closes_at_end=False):
            raise Wrong(f"{call} What is left at the end of backward() is a bucket, too.")
        if limit > n_bytes:
            raise Wrong(f"{call} With one bucket it is computing, and then one all-reduce.")
        if isinstance(got, int | float) and got > right and got >= computed:
            raise Wrong(f"{call} A bucket travels while later layers compute.")
        raise Wrong(f"{call} A bucket begins when it is closed and the one before it is sent.")
    return "The last bucket is always exposed; more buckets cost alpha each. The best is between."


def _step(layers, limit, alpha, beta, closes_at_end: bool = True) -> float:
    computed = sent = bucket = 0.0
    for number, (ms, n_bytes) in enumerate(layers):
        computed, bucket = computed + ms, bucket + n_bytes
        if bucket >= limit or (closes_at_end and number == len(layers) - 1):
            sent, bucket = max(sent, computed) + alpha + beta * bucket, 0.0
    return sent


@exercise("07.5")
def worst(answer) -> str:
    """Links of two kinds; the largest error is once above and once below."""
    for alpha, beta, factors in (
        (1e-4, 4e-8, {(2, 10**6): 1.02, (4, 10**6): 0.9, (8, 8 * 10**6): 1.05}),
        (1e-3, 1e-8, {(2, 4000): 1.3, (8, 10**6): 0.95, (4, 10**7): 1.0}),
        (5e-5, 8e-8, {(2, 10**5): 0.99, (16, 10**5): 1.2, (16, 10**7): 1.19}),
    ):
        link = Link(alpha, beta)
        messages = {size: link.seconds(size) for size in (8, 65_536, 1_048_576)}
        rings = {
            (ranks, size): factor * 2 * (ranks - 1) * link.seconds(size / ranks)
            for (ranks, size), factor in factors.items()
        }
        errors = {case: 1 / factor - 1 for case, factor in factors.items()}
        case = max(errors, key=lambda case: abs(errors[case]))
        got = answer(dict(messages), dict(rings))
        if not isinstance(got, tuple) or len(got) != 2:
            raise Wrong(f"You returned {got!r}: return the case and its error, as a pair.")
        close = math.isclose(got[1], errors[case], rel_tol=1e-4)
        if got[0] == case and close:
            continue
        about = f"With α = {alpha:g} s and β = {beta:g} s per byte"
        if math.isclose(got[1], -errors[case], rel_tol=1e-4) or math.isclose(
            got[1], 1 / (1 + errors[case]) - 1, rel_tol=1e-4
        ):
            raise Wrong(f"{about}: the sign. It is predicted / measured - 1.")
        if got[0] == max(errors, key=lambda case: errors[case]):
            raise Wrong(f"{about}: an error far below 0 is large, too. Compare absolute values.")
        raise Wrong(
            f"{about} the worst case is {case} with {errors[case]:+.1%}; you said {got[0]} with "
            f"{got[1]:+.1%}. A ring has 2 (N - 1) steps, each with 1 / N of the tensor."
        )
    return "Found, with its sign. A model is as good as its worst case outside of its fit."


@exercise("07.6", seconds=180)
def hierarchical(answer) -> str:
    """On four real ranks, taken as two instances with two ranks each, and as one of four."""
    with start_ranks(4) as ranks:
        for length, each in ((12, 2), (1000, 2), (8, 4)):
            results = _on_ranks(ranks, answer, length, each)
            for rank, result in enumerate(results):
                _check(result, rank, length, each)
            for first in range(0, len(results), each):
                _check_link(results[first : first + each], first // each, length)
    return "The whole sum on every rank, and over each instance's link only one sum went."


def _on_ranks(ranks, answer, length: int, each: int) -> list[dict]:
    try:
        return ranks.run("collectives.practice:call_in_tiers", answer, length, each, timeout=15)
    except RankFailed as error:
        message = str(error)
        if unanswered("07.6") in message:
            raise
        if "had not returned" in message:
            raise Wrong(
                "Your ranks wait for each other for ever. Every rank of a group must make the same "
                "calls on it, in the same order, with tensors of the same size."
            ) from error
        raise Wrong(f"A rank stopped:\n{message}") from error


def _check(result: dict, rank: int, length: int, each: int) -> None:
    at = f"{4 // each} instances with {each} ranks, {length} numbers: rank {rank}"
    if "values" not in result:
        raise Wrong(f"{at} returned {result['kind']}. Return a tensor.")
    right = [1000.0 + 4 * number for number in range(length)]
    if result["values"] != right:
        raise Wrong(f"{at} returned {_description(result['values'], right, rank, each)}")
    for name, where, _ in result["calls"]:
        if where == "all":
            raise Wrong(f"{at} called dist.{name} without a group: that is a flat one, of all.")


def _check_link(members: list[dict], instance: int, length: int) -> None:
    """Whether an instance's ranks together gave their inter-node groups no more than one sum."""
    calls = [call for member in members for call in member["calls"]]
    crossing = sum(numbers for _, where, numbers in calls if where == "inter_node")
    if crossing > length:
        raise Wrong(
            f"{4 // len(members)} instances with {len(members)} ranks, {length} numbers: the "
            f"ranks of instance {instance} gave their inter-node groups {crossing} numbers in all. "
            f"The sum is right, but {length} are enough: reduce-scatter intra-node first."
        )


def _description(values: list, right: list, rank: int, each: int) -> str:
    if len(values) != len(right):
        return f"{len(values)} numbers, not {len(right)}: gather all parts, and join them."
    first = rank // each * each
    instance_sum = [
        sum(100.0 * (member + 1) + n for member in range(first, first + each)) for n in range(4)
    ]
    if values[:4] == instance_sum[: len(values)]:
        return "its own instance's sum: nothing went inter-node."
    return f"{values[:3]} …, and {right[:3]} … was right."
