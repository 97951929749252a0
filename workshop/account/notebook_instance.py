"""What the notebook instance's stack is made with: the kit in the bucket, scripts in the template.

    python -m workshop.account.notebook_instance    # after a change in cloudformation/notebook/

A template can hold no references to files, so the instance's scripts are copied into it: a block
whose first line is `- |  # NAME` is replaced by the text of that file.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from botocore.exceptions import ClientError

from workshop.jobs.seat import StackError, outputs
from workshop.paths import CLOUDFORMATION, ROOT

KEY = "kit/kit.tar.gz"  # cloudformation/notebook.yaml looks for it there
TEMPLATE = CLOUDFORMATION / "notebook.yaml"
SCRIPTS = CLOUDFORMATION / "notebook"
BLOCK = re.compile(r"^(?P<indent> *)- \|  # (?P<name>\S+)\n(?:(?P=indent)  .*\n|\n)+", re.MULTILINE)


def upload_kit(session) -> None:
    """Put the kit, as it was last committed, into the seat's bucket, unless it is there already.

    A .tar.gz and not a .zip, since the kit's programs have to stay executable.
    Raises StackError if this is no git checkout, or there is no bucket.
    """
    body = _packed()
    digest = hashlib.sha256(body).hexdigest()
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


def embedded(template: str, scripts: Path = SCRIPTS) -> str:
    """The template's text with every named block as its file is now."""
    return BLOCK.sub(lambda found: _block(found["indent"], found["name"], scripts), template)


def _block(indent: str, name: str, scripts: Path) -> str:
    lines = (scripts / name).read_text(encoding="utf-8").splitlines()
    body = "\n".join(f"{indent}  {line}" if line else "" for line in lines)
    return f"{indent}- |  # {name}\n{body}\n"


def main() -> None:
    """Write the template anew."""
    TEMPLATE.write_text(embedded(TEMPLATE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{TEMPLATE.name} holds the files of {SCRIPTS.name}/ as they are now.")


if __name__ == "__main__":
    main()
