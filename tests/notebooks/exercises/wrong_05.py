"""Plausible wrong answers to lesson 05's exercises, and what the check says of each."""

import json
import math

import numpy as np


def hourly(budget, usd_per_hour, max_run):
    return int(budget / usd_per_hour)


def fits(budget, usd_per_hour, max_run):
    return budget / (usd_per_hour * (max_run + 120) / 3600)


def stopping_forgotten(budget, usd_per_hour, max_run):
    return int(budget / (usd_per_hour * max_run / 3600))


def rounded_up(budget, usd_per_hour, max_run):
    return math.ceil(fits(budget, usd_per_hour, max_run))


def at_least_one(budget, usd_per_hour, max_run):
    return max(1, int(fits(budget, usd_per_hour, max_run)))


def one_too_few(budget, usd_per_hour, max_run):
    return max(0, int(fits(budget, usd_per_hour, max_run)) - 1)


def mpi(slots, **other):
    right = {
        "enabled": True,
        "processes_per_host": slots,
        "custom_mpi_options": "-x NCCL_DEBUG=INFO",
    }
    return {"mpi": right | other}


def as_server(slots):
    return {"parameter_server": mpi(slots)["mpi"]}


def one_slot_idle(slots):
    return mpi(slots, processes_per_host=slots - 1)


def misspelled(slots):
    options = mpi(slots)
    options["mpi"]["custom_mpi_option"] = options["mpi"].pop("custom_mpi_options")
    return options


def toolkits_flag(slots):
    return mpi(slots, custom_mpi_options="--NCCL_DEBUG=INFO")


def quoted(slots):
    return mpi(slots, custom_mpi_options='-x "NCCL_DEBUG=INFO"')


def always_two(slots):
    return mpi(slots, processes_per_host=2)


def nothing_set(slots):
    options = mpi(slots)
    del options["mpi"]["custom_mpi_options"]
    return options


def records(lines):
    return [json.loads(line) for line in lines if line.startswith("{")]


def hashes_of(lines):
    return [r["weights_sha256"] for r in records(lines) if r["event"] == "weights"]


def worst_accuracy(logs):
    def accuracy(name):
        return next(r["test_accuracy"] for r in records(logs[name]) if r["event"] == "epoch")

    return min(logs, key=accuracy)


def all_must_differ(logs):
    return next((n for n, lines in logs.items() if len(set(hashes_of(lines))) == 4), None)


def first_two_ranks(logs):
    return next((n for n in logs if len(set(sorted(hashes_of(logs[n]))[:2])) > 1), None)


def fewest_hashes(logs):
    return min(logs, key=lambda name: len(set(hashes_of(logs[name]))))


def others(seconds):
    return seconds.columns.drop(["A", "A again"])


def as_words(ratio, shown):
    if not shown:
        return "no difference shown"
    return "faster" if ratio < 1 else "slower"


def by_medians(seconds):
    """No noise, no rounds."""
    ratio = seconds.median() / seconds["A"].median()
    return {name: as_words(ratio[name], ratio[name] != 1) for name in others(seconds)}


def sign_alone(seconds):
    ratios = seconds.div(seconds["A"], axis=0)
    shown = ((ratios < 1).all() | (ratios > 1).all()).to_dict()
    return {name: as_words(ratios[name].median(), shown[name]) for name in others(seconds)}


def noise_alone(seconds):
    ratios = seconds.div(seconds["A"], axis=0)
    low, high = ratios["A again"].min(), ratios["A again"].max()
    medians = ratios.median()
    return {n: as_words(medians[n], not low <= medians[n] <= high) for n in others(seconds)}


def ranges_overlap(seconds):
    low, high = seconds.min(), seconds.max()
    return {
        name: as_words(
            seconds[name].median() / seconds["A"].median(),
            low[name] > high["A"] or high[name] < low["A"],
        )
        for name in others(seconds)
    }


def with_the_noise(seconds):
    return sign_alone(seconds) | {"A again": "no difference shown"}


RIGHT = {
    "05.1": [lambda *arguments: np.int64(fits(*arguments))],
    "05.2": [lambda slots: mpi(slots, custom_mpi_options="--verbose -x NCCL_DEBUG=INFO")],
}
WRONG = {
    "05.1": [
        (hourly, "the price is for an hour"),
        (rounded_up, "more than the budget of"),
        (at_least_one, "Then the answer is 0"),
        (fits, "whole numbers"),
        (stopping_forgotten, "may take 120 s to stop"),
        (one_too_few, "still fit the budget"),
    ],
    "05.2": [
        (as_server, "does not start mpirun"),
        (one_slot_idle, "at most the number of slots"),
        (misspelled, "silently ignores it"),
        (toolkits_flag, "only SageMaker's toolkit knows it"),
        (quoted, "leave them out"),
        (always_two, "use every slot"),
        (nothing_set, "is missing"),
    ],
    "05.3": [
        (worst_accuracy, "one hash. You said 'horovod-1'"),
        (all_must_differ, "whichever ranks agree"),
        (first_two_ranks, "whichever ranks agree"),
        (fewest_hashes, "more than one different hash"),
    ],
    "05.4": [
        (by_medians, "C is 'no difference shown'"),
        (sign_alone, "two runs of A differ by 4 %"),
        (noise_alone, "In one round it was slower"),
        (ranges_overlap, "take ratios within a round"),
        (with_the_noise, "a dictionary with the keys B, C, D, E"),
    ],
}
