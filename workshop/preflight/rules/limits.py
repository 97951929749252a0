"""How long, how cheap: max_run, spot, warm pools, and the most that the job can cost."""

from __future__ import annotations

from collections.abc import Iterator

from workshop.account.prices import Cost, PriceNotKnown, cost
from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import facts, longest_keep_alive
from workshop.preflight.finding import Finding, bad, unknown

WHAT = "limits"


def describe(job: JobConfiguration) -> str:
    """How long the job may run, and how its instances are rented."""
    how = f"spot, {job.max_wait} s at most with waiting" if job.use_spot else "on demand"
    warm = f", kept warm for {job.keep_alive} s (billed)" if job.keep_alive else ""
    return f"Ends after {job.max_run} s at the latest; {how}{warm}."


def check(job: JobConfiguration) -> Iterator[Finding]:
    """Limits that SageMaker refuses, and those that cost what nobody wants."""
    yield from _run(job)
    yield from _spot(job)
    yield from _warm_pool(job)
    yield from _checkpoints(job)


def most_usd(job: JobConfiguration) -> float:
    """What a job costs at most, its warm pool included. Raises PriceNotKnown, ValueError."""
    found = cost(job.instance_type, job.instance_count, 0, job.max_run)
    return found.most_usd + _warm_usd(job, found)


def _warm_usd(job: JobConfiguration, found: Cost) -> float:
    """What the job's instances cost while they are kept warm."""
    return job.instance_count * job.keep_alive / 3600 * found.usd_per_hour


def price(job: JobConfiguration) -> Finding:
    """What the job costs at most, and what is expected if seconds are given."""
    if job.instance_count < 1:
        return unknown("cost", "there is no instance to pay for.")
    try:
        found = cost(job.instance_type, job.instance_count, job.seconds or 0, job.max_run)
    except PriceNotKnown as error:
        return unknown("cost", str(error))
    expected = f"about {found.usd:.2f} USD for {job.seconds:g} s, " if job.seconds else ""
    warm = _warm_usd(job, found)
    also = f" (and {warm:.2f} USD for the warm pool)" if warm else ""
    said = f"{expected}at most {found.most_usd:.2f} USD, since max_run is {job.max_run} s{also}. "
    at = f"{found.usd_per_hour:g} USD per instance and hour on demand in {found.region}."
    return Finding(
        "cost",
        True,
        said[0].upper() + said[1:] + at,
        source=f"{found.source} (price list of {found.price_date})",
    )


def _run(job: JobConfiguration) -> Iterator[Finding]:
    longest = facts()["limits"]["max_run"]
    if job.max_run < 1:
        yield bad(
            WHAT,
            f"max_run is {job.max_run} s: the job would have no time.",
            "Give the seconds after which a job that hangs shall be ended, for example 1800.",
            "stopping",
        )
    elif job.max_run > longest:
        yield bad(
            WHAT,
            f"max_run is {job.max_run} s; SageMaker lets no job run longer than 28 days "
            f"({longest} s).",
            "Give a few times what the job needs. It bounds what a job that hangs costs.",
            "stopping",
        )


def _spot(job: JobConfiguration) -> Iterator[Finding]:
    if not job.use_spot:
        if job.max_wait is not None:
            yield bad(
                WHAT,
                f"max_wait is {job.max_wait} s, but the job is not a spot job. SageMaker refuses "
                "MaxWaitTimeInSeconds there.",
                "Leave max_wait out, or add use_spot_instances=True.",
                "max-wait",
            )
        return
    if job.max_wait is None:
        yield bad(
            WHAT,
            "A spot job must say how long it may wait for instances and run: max_wait is missing.",
            f"Give max_wait={2 * job.max_run}, for example. It must not be below max_run.",
            "spot",
        )
    elif job.max_wait < job.max_run:
        yield bad(
            WHAT,
            f"max_wait ({job.max_wait} s) is below max_run ({job.max_run} s), and counts the "
            "waiting and the running together.",
            f"Give max_wait={job.max_run} or more.",
            "stopping",
        )
    if not job.checkpoint_s3_uri:
        yield bad(
            WHAT,
            "A spot job without checkpoints begins again from nothing each time AWS takes its "
            "instances away.",
            "Give checkpoint_s3_uri, and let the script save to /opt/ml/checkpoints.",
            "spot",
        )


def _warm_pool(job: JobConfiguration) -> Iterator[Finding]:
    if job.keep_alive and job.use_spot:
        yield bad(
            WHAT,
            "A warm pool (keep_alive) cannot be made of spot instances.",
            "Choose one of the two: spot is cheaper, a warm pool starts the next job sooner.",
            "warm-pools",
        )
    if not 0 <= job.keep_alive <= longest_keep_alive():
        yield bad(
            WHAT,
            f"keep_alive is {job.keep_alive} s; SageMaker takes 0 to {longest_keep_alive()} s.",
            "Give the seconds until your next job. A warm pool is billed while it waits.",
            "api",
        )


def _checkpoints(job: JobConfiguration) -> Iterator[Finding]:
    if job.checkpoint_s3_uri and not job.checkpoint_s3_uri.startswith("s3://"):
        yield bad(
            WHAT,
            f"checkpoint_s3_uri is {job.checkpoint_s3_uri!r}, and must be a place in S3.",
            'Write "s3://BUCKET/checkpoints/NAME".',
            "api",
        )
