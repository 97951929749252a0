"""The kit as a file in the seat's bucket, from where a notebook instance sets itself up."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

from botocore.exceptions import ClientError

from workshop.paths import ROOT
from workshop.stacks.errors import StackError, asking
from workshop.stacks.names import stack_name
from workshop.stacks.reading import outputs

KEY = "kit/kit.tar.gz"  # cloudformation/notebook.yaml looks for it there


def upload(session) -> None:
    """Put the kit, as it was last committed, into the seat's bucket, unless it is there already.

    A .tar.gz and not a .zip, since the kit's programs have to stay executable.
    Raises StackError if this is no git checkout, or the bucket takes nothing.
    """
    body = _packed()
    digest = hashlib.sha256(body).hexdigest()
    with asking(stack_name(session.seat, "notebook")):
        bucket = outputs(session, ("storage",))["BucketName"]
        s3, place = session.client("s3"), {"Bucket": bucket, "Key": KEY}
        if _held(s3, place) != digest:
            s3.put_object(**place, Body=body, Metadata={"sha256": digest})


def _held(s3, place: dict[str, str]) -> str:
    """The digest of what is there; empty if nothing is."""
    try:
        return s3.head_object(**place)["Metadata"].get("sha256", "")
    except ClientError as error:
        if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
            return ""
        raise


def _packed() -> bytes:
    git = shutil.which("git")
    command = [git, "-C", ROOT, "archive", "--format=tar.gz", "HEAD"]
    done = subprocess.run(command, capture_output=True) if git else None
    if done is None or done.returncode:
        why = done.stderr.decode(errors="replace").strip() if done else "there is no git here"
        raise StackError(
            f"The kit for the notebook instance cannot be packed from {ROOT}: {why}. Say where "
            "the instance finds it: --parameter Kit=https://... (for git clone)."
        )
    return done.stdout
