"""Benchmarks of narrow links: `make bench`, or `python -m tools.bench [NAME ...]`.

Each function measures in jobs on the emulator, prints what the lessons take for granted beside
ratios or bounds measured in the same run, and returns all that it measured. runs: blocks of each
measurement. None is a test: a slow or busy machine gives slow figures, not a failure.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import local_sagemaker
from workshop.failures.jobs import Scratch
from workshop.jobs.local_server import pointed_at, up_for_now
from workshop.lesson import reference_results
from workshop.measure import held_out
from workshop.measure import overlap as overlapped
from workshop.output import events
from workshop.paths import DEMOS, TRAIN

LESSON = "07"  # which shows the results
PLACED = "gloo,ring,interleaved_ring,hierarchical,mini_herring"
FLAT = "gloo,naive,tree,ring"  # with one rank on each instance the others are rings
SIZES = "1000000,4000000"
# mbit, latency in ms, instances, ranks on each, algorithms, bytes
LINKS = (
    (200, 0, 2, 4, PLACED, SIZES),
    (100, 0, 2, 4, PLACED, SIZES),
    (400, 0, 2, 4, PLACED, "1000000,4000000,8000000"),
    (200, 0, 2, 2, PLACED, SIZES),
    (400, 0, 2, 2, PLACED, SIZES),
    (200, 0, 4, 2, PLACED, SIZES),
    (200, 0, 4, 1, FLAT, SIZES),
    (100, 0, 4, 1, FLAT, SIZES),
    (200, 0, 2, 1, "gloo,ring", "250000,1000000,8000000"),
    (200, 1, 2, 4, PLACED, SIZES),
)
# 8 MiB on 2 instances of 4 ranks. "gloo again": gloo a second time, so its ratio is the noise.
TIERS = (200, 0, 2, 4, "gloo,gloo again,ring,hierarchical", 8 * 2**20)
TIERS_JOBS = 5
STEPS_MBITS = (100, 300, 800)
PLACEMENTS = ((2, 1), (2, 2), (4, 1))  # instances, ranks on each
HIDDEN_UNITS = "512,1536,4096"  # 1.1, 3.2 and 8.6 MB of gradients; the middle one only here
IMAGES = 64  # of each rank
OVERLAP_MBITS = (500, 1000, 2000, 4000, 8000)
BUCKETS = "1,5,25"  # MiB; beside them DDP's own limits, and one bucket

Run = Callable[..., list[str]]  # what `jobs` yields


@contextlib.contextmanager
def jobs() -> Iterator[Run]:
    """A function that runs a job to its end and returns its log's lines; all is gone afterwards.

    processes: started by mpirun on each instance. links: such as "200mbit". also: a file that is
    put beside the script. Raises RuntimeError with the reason and log of a job that failed.
    """
    with up_for_now() as emulator, pointed_at(emulator), contextlib.closing(Scratch()) as scratch:

        def run(
            script: Path,
            *,
            instances: int,
            processes: int,
            links: str,
            also: Path | None = None,
            **parameters,
        ) -> list[str]:
            result = scratch.run(
                script,
                instance_count=instances,
                hyperparameters=parameters,
                dependencies=[str(also)] if also else [],
                distribution={"mpi": {"enabled": True, "processes_per_host": processes}},
                environment={"LOCAL_SAGEMAKER_BANDWIDTH": links},
            )
            if result.status != "Completed":
                raise RuntimeError(result.failure_reason())
            return [line.text for line in result.lines]

        yield run


def links(runs: int) -> dict[str, Any]:
    """All-reduces on links that were not measured before, beside what the cost model predicts.

    The first job's messages give alpha and beta, and all all-reduces are predicted from these
    alone (workshop/measure/held_out.py).
    """
    measured: list[dict] = []
    with jobs() as run:
        for job in LINKS:
            if job[1] and local_sagemaker.shaping_unavailable_reason(latency=True):
                print("1 ms: not measured, this kernel has no netem", flush=True)
                continue
            measured.append(all_reduces(run, job, runs))
            print(f"{link(*job[:2])}, {job[2]} x {job[3]}: measured", flush=True)
    report(held_out.all_reduces(measured))
    return {"jobs": measured}


def steps(runs: int) -> dict[str, Any]:
    """Steps of training that the model of lesson 07 predicts: links x ranks x sizes of the model.

    What it starts from is measured before, in jobs that are not among those it predicts: single
    messages (alpha, beta), and one rank alone (computing, and how much of it is left when the
    gradients are ready). Of each step the least of the blocks counts, here and there: the model
    knows nothing of other programs, and those only ever add time.
    """
    with jobs() as run:

        def train(mbit: int, instances: int, ranks: int, sizes: str, images: str) -> dict:
            settings = {"hidden-units": sizes, "images": images, "blocks": runs}
            place = (mbit, 0, instances, ranks)
            job = measured_job(run, DEMOS / "measure_steps.py", place, ["steps"], **settings)
            print(f"{mbit} Mbit/s, {instances} x {ranks}: measured", flush=True)
            return job

        measured = [all_reduces(run, (*LINKS[0][:4], "gloo", 1024), runs)]
        alone = train(200, 1, 1, "512,4096", "32,96")["events"]
        for mbit in STEPS_MBITS:
            for placement in PLACEMENTS:
                measured.append(train(mbit, *placement, HIDDEN_UNITS, str(IMAGES)))
    cores = os.cpu_count() or 1
    report(held_out.steps(measured, alone, cores))
    return {"jobs": measured, "alone": alone, "cores": cores}


def tiers(runs: int) -> dict[str, Any]:
    """Two tiers against gloo's ring, in several jobs: the times of two differ by some per cent."""
    measured = []
    with jobs() as run:
        for number in range(1, TIERS_JOBS + 1):
            records = all_reduces(run, TIERS, runs)["events"]
            records = [event for event in records if event["event"] == "all_reduce"]
            measured.append({event["algorithm"]: event["seconds"] for event in records})
            noise = ratio(measured[-1], "gloo", "gloo again")
            gain = ratio(measured[-1], "gloo", "hierarchical")
            print(f"job {number}: {gain:.2f} (gloo again: {noise:.2f})", flush=True)
    ratios = [ratio(seconds, "gloo", "hierarchical") for seconds in measured]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"median of {TIERS_JOBS} jobs: {statistics.median(ratios):.2f} ({spread}); by bytes 1.75")
    return {"jobs": measured, "bytes": TIERS[-1], "mbit": TIERS[0]}


def overlap(runs: int) -> dict[str, Any]:
    """How much of the all-reduce DDP hides: bandwidth of the link x size of the buckets."""
    measured: list[dict[str, Any]] = []
    with jobs() as run:
        for mbit in OVERLAP_MBITS:
            settings = {"bucket-megabytes": BUCKETS, "blocks": runs}
            script, model = DEMOS / "show_overlap.py", TRAIN / "train_torch_fsdp.py"
            job = measured_job(run, script, (mbit, 0, 2, 1), ["steps"], also=model, **settings)
            seconds = {event["setting"]: event["seconds"] for event in job["events"]}
            measured.append({"mbit": mbit, "seconds": seconds})
            print(f"{mbit} Mbit/s: measured", flush=True)
    table = Table("Mbit/s", "most", *overlapped.hidden(measured[0]["seconds"]))
    for job in measured:
        hidden = overlapped.hidden(job["seconds"]).values()
        most = overlapped.most_hidden(job["seconds"])
        table.add_row(str(job["mbit"]), f"{most:.0%}", *(f"{part:.0%}" for part in hidden))
    Console(width=100).print(table)
    return {"jobs": measured}


def link(mbit: float, latency_ms: float = 0) -> str:
    """The emulator's words for a bandwidth: "200mbit", "200mbit 1ms"."""
    return f"{mbit:g}mbit {latency_ms:g}ms" if latency_ms else f"{mbit:g}mbit"


def measured_job(
    run: Run, script: Path, place: Sequence, kinds: list[str], **settings
) -> dict[str, Any]:
    """Run a job; its place, and its records of these kinds. place: the first four of LINKS."""
    mbit, latency_ms, instances, ranks = place
    where = {"instances": instances, "processes": ranks, "links": link(mbit, latency_ms)}
    lines = run(script, **where, **settings)
    about = {"mbit": mbit, "latency_ms": latency_ms}
    about |= {"instances": instances, "ranks_per_instance": ranks}
    return about | {"events": [event for kind in kinds for event in events(lines, kind)]}


def all_reduces(run: Run, job: tuple, blocks: int) -> dict:
    """Run a job of measure_all_reduce.py; what held_out.all_reduces needs of it."""
    *place, algorithms, sizes = job
    kinds = ["placement", "link", "add", "all_reduce"]
    settings = {"algorithms": algorithms, "bytes": sizes, "blocks": blocks}
    return measured_job(run, DEMOS / "measure_all_reduce.py", place, kinds, **settings)


def ratio(seconds: dict[str, list[float]], slower: str, faster: str) -> float:
    """The median over the blocks of one algorithm's seconds by another's."""
    pairs = zip(seconds[slower], seconds[faster], strict=True)
    return statistics.median(slow / fast for slow, fast in pairs)


def report(points) -> None:
    """Each measurement beside its prediction; then the summary and the wrong winners."""
    table = Table("what", "predicted, ms", "measured, ms", "off")
    for point in points.to_dict("records"):
        ms = [f"{1000 * point[name]:.0f}" for name in ("predicted", "measured")]
        table.add_row(held_out.name_of(point), *ms, f"{point['error']:+.0%}")
    Console(width=100).print(table)
    print(held_out.summary(points))
    for row in held_out.wrong_winners(points).to_dict("records"):
        words = "{where}: the model says {predicted}, {measured} was faster, {slower:.2f} times"
        print("wrong winner: " + words.format(**row))


MEASURES = {"links": links, "steps": steps, "tiers": tiers, "overlap": overlap}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(MEASURES)))
@click.option("--runs", type=click.IntRange(min=5), default=7, help="Blocks of each measurement.")
@click.option("--record", is_flag=True, help="Keep the results in notebooks/recorded/.")
def main(names: tuple[str, ...], runs: int, record: bool) -> None:
    """Measure and print: all benchmarks, or those that are named."""
    # So that an emulator and its jobs end with this program, however it is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for name in names or MEASURES:
        load = os.getloadavg()[0]
        print(f"\n{name}, {os.cpu_count()} cores, load {load:.1f} before the start")
        results = MEASURES[name](runs)
        if record:
            loads = [round(value, 1) for value in (load, os.getloadavg()[0])]
            path = reference_results.write(LESSON, name, {"load": loads, **results})
            print(f"kept in {path}")


if __name__ == "__main__":
    main(prog_name="python -m tools.bench")
