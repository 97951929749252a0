"""Plausible wrong answers to lesson 05's exercises, and what the check says of each."""

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


def seconds_of(table, samples):
    return table["overhead s"] + samples / table["samples/s"]


def usd_of(table, samples):
    return table["instances"] * seconds_of(table, samples) / 3600 * table["USD per hour"]


def fastest(table, samples, deadline):
    seconds = seconds_of(table, samples)
    return seconds.idxmin() if seconds.min() <= deadline else None


def never_late(table, samples, deadline):
    return usd_of(table, samples).idxmin()


def one_instance_paid(table, samples, deadline):
    in_time = seconds_of(table, samples) <= deadline
    usd = (usd_of(table, samples) / table["instances"])[in_time]
    return usd.idxmin() if len(usd) else None


def overhead_free(table, samples, deadline):
    in_time = seconds_of(table, samples) <= deadline
    usd = (table["instances"] * samples / table["samples/s"] * table["USD per hour"])[in_time]
    return usd.idxmin() if len(usd) else None


def first_of_equals(table, samples, deadline):
    in_time = seconds_of(table, samples) <= deadline
    usd = usd_of(table, samples)[in_time]
    return usd.idxmin() if len(usd) else None


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
        (fastest, "costs .* USD"),
        (never_late, "too late|return None"),
        (one_instance_paid, "Count every instance"),
        (overhead_free, "overhead, which is billed too"),
        (first_of_equals, "cost the same"),
    ],
}
