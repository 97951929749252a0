"""What the tests of the notebook instance share: its scripts as deployed, a machine to run them."""

import base64
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

BIN = Path(sys.executable).parent
# What set_up.sh asks of conda, and no other arguments. The programs that it installs only say that
# they were run, and where.
CONDA = """
case "$*" in
  "env create --quiet --prefix $FOLDER/workshop-env --file $FOLDER/workshop-kit/environment.yml") ;;
  "install --yes --quiet --prefix $FOLDER/workshop-env --channel conda-forge gxx make")
    [ ! -e "$ROOT/no-compiler" ]; exit ;;
  *) echo "conda: what is $*?" >&2; exit 9 ;;
esac
[ -e "$7" ] || exit 9
[ ! -e "$ROOT/conda-fails" ] || exit 1
while [ -e "$ROOT/conda-takes-long" ]; do sleep 0.1; done
mkdir -p "$5/bin"
cp "$ROOT/bin/tool" "$5/bin/python"
cp "$ROOT/bin/tool" "$5/bin/pip"
"""
# The environment's python and pip: what they are run for, and nothing else.
TOOL = """
case "$*" in
  "install --quiet --no-deps --editable $FOLDER/workshop-kit") ;;
  "-m ipykernel install --user --name workshop --display-name Workshop") ;;
  "-m bootstrap --horovod-here") [ "$PWD" = "$FOLDER/workshop-kit" ] || exit 8 ;;
  *) echo "$0: what is $*?" >&2; exit 9 ;;
esac
"""


def kit_archive() -> bytes:
    """A kit as `git archive` would pack it, with only what the set-up reads."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, text in {"environment.yml": "name: test\n", "pyproject.toml": "\n"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


def lifecycle(session) -> dict[str, str]:
    """ "OnStart" of the seat's notebook stack, in base64, as SageMaker has it."""
    pages = session.client("cloudformation").list_stack_resources(
        StackName=f"workshop-{session.seat}-notebook"
    )
    arn = next(
        one["PhysicalResourceId"]
        for one in pages["StackResourceSummaries"]
        if one["LogicalResourceId"] == "Lifecycle"
    )
    found = session.client("sagemaker").describe_notebook_instance_lifecycle_config(
        NotebookInstanceLifecycleConfigName=arn.rsplit("/", 1)[-1]
    )
    assert not found.get("OnCreate")
    return {name: found[name][0]["Content"] for name in ("OnStart",)}


class Machine:
    """A notebook instance's file system under a folder, and its programs as little stand-ins."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "home/ec2-user/SageMaker"
        self.bin, self.calls = root / "bin", root / "calls"
        for folder in (self.folder, self.bin, root / "var/log"):
            folder.mkdir(parents=True)
        self.program("sudo", '[ "$1 $2 $3" = "-u ec2-user -H" ] || exit 9\nshift 3\nexec "$@"')
        self.program("tool", TOOL)
        copy = '[ "$1 $2 $3 $5" = "s3 cp --only-show-errors -" ] || exit 9'
        self.program("aws", f'{copy}\nexec "{BIN}/aws" "$@"')
        self.program("conda", CONDA)
        self.env = {
            **os.environ,
            "ROOT": str(root),
            "FOLDER": str(self.folder),
            "CONDA": str(self.bin / "conda"),
            "PATH": f"{self.bin}:{BIN}:{os.environ['PATH']}",
        }

    def program(self, name: str, body: str) -> None:
        path = self.root / name if "/" in name else self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "${{0##*/}} $*" >>"{self.calls}"\n{body}\n')
        path.chmod(0o755)

    def run(self, content: str) -> subprocess.CompletedProcess:
        """Run a lifecycle script as SageMaker would. content: in base64."""
        script = self.root / "script.sh"
        script.write_bytes(base64.b64decode(content))
        return subprocess.run(
            ["bash", script], env=self.env, capture_output=True, text=True, timeout=30
        )

    def said(self) -> str:
        return self.calls.read_text() if self.calls.exists() else ""


def until(true, seconds: float = 90) -> None:
    """Wait for a condition. Fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def end_processes_of(root: Path) -> None:
    """End the processes whose command line names the folder of a test."""
    for process in psutil.process_iter():
        try:
            if str(root) in " ".join(process.cmdline()) and process.pid != os.getpid():
                process.kill()
        except psutil.Error:
            continue


@contextmanager
def jupyter(answers: dict):
    """A Jupyter that answers what `answers` holds for a path. Yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
