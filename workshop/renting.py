"""How a job's instances are rented, beside the usual way: spot, or kept warm for the next job."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

WAIT_FACTOR = 2  # a spot job may wait as long as it may run


class CannotRent(ValueError):
    """The settings do not go together; the message says why and what to do."""


def renting(folder: str, max_run: int, spot: bool, keep_alive: int) -> dict:
    """Arguments of an estimator for spot instances or a warm pool; none for the usual way.

    Args:
        folder: a place in S3 under which each spot job gets one of its own for checkpoints: a
            job that is interrupted goes on from there, and no other job does.
        max_run: seconds that the job may run.
        spot: rent what AWS has spare, for less; AWS may take it away at any time.
        keep_alive: seconds that the instances stay with you after the job. They are billed.

    Raises:
        CannotRent: both are asked for, or keep_alive is no time that SageMaker takes.
    """
    from workshop.account.preflight.facts import longest_keep_alive, source  # it imports sessions

    if spot and keep_alive:
        raise CannotRent(
            "spot and keep_alive do not go together: a warm pool cannot be made of spot "
            f"instances ({source('warm-pools')}). Choose one: spot is cheaper, keep_alive starts "
            "the next job sooner."
        )
    if isinstance(keep_alive, bool) or not 0 <= keep_alive <= longest_keep_alive():
        raise CannotRent(
            f"keep_alive is {keep_alive!r}; it must be seconds from 0 (none) to "
            f"{longest_keep_alive()}."
        )
    if keep_alive:
        return {"keep_alive_period_in_seconds": keep_alive}
    if not spot:
        return {}
    own = f"{datetime.now(UTC):%Y-%m-%d-%H-%M-%S}-{uuid4().hex[:8]}"
    return {
        "use_spot_instances": True,
        "max_wait": WAIT_FACTOR * max_run,
        "checkpoint_s3_uri": f"{folder}-{own}",
    }
