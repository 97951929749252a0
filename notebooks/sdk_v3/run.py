"""`make sdk-v3`: run this appendix's notebook in the environment of version 3.

The notebook's kernel is build/sdk-v3's Python; papermill runs here, in the course's environment.
If the emulator was down, it is down again afterwards. Exit status 1: a cell failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from local_sagemaker import EmulatorError
from workshop.course import pages as page
from workshop.course import run as runner
from workshop.course.execute import NotebookFailed, execute
from workshop.course.lessons import chosen
from workshop.jobs import local_server
from workshop.paths import BUILD, ROOT

NOTEBOOK = Path(__file__).with_name("sdk_v3.ipynb")
ENVIRONMENT = BUILD / "sdk-v3"
KERNEL = "sdk-v3"


def main() -> int:
    """Run lesson 00 for its stacks and data, then the notebook; write its page."""
    install_kernel()
    try:
        with local_server.up_for_now() as emulator:
            if not runner.run(chosen(("00",)), BUILD / "before-sdk-v3", "local", {}):
                return 1
            local_server.point_here(emulator)
            try:
                return run() or record()
            finally:
                local_server.point_back()
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. `workshop jobs` lists what still runs.", file=sys.stderr)
        return 130


def install_kernel() -> None:
    """Let Jupyter know of version 3's Python, under this environment's own name."""
    # In a folder of its own: beside it pip has put a kernel that is called python3 too.
    python, prefix = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "kernel"
    names = ["--name", KERNEL, "--display-name", "SDK v3", "--prefix", str(prefix)]
    subprocess.run(
        [str(python), "-m", "ipykernel", "install", *names], check=True, capture_output=True
    )
    paths = [str(prefix / "share" / "jupyter"), os.environ.get("JUPYTER_PATH", "")]
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, paths))


def run() -> int:
    """Run the notebook; 1 if a cell failed. The executed copy and its page go to build/."""
    copy, status = BUILD / NOTEBOOK.name, "failed"
    try:
        seconds = execute(NOTEBOOK, copy, {}, cell_seconds=900, kernel=KERNEL)
        status = "ok"
        print(f"{NOTEBOOK.stem}: ok, {seconds:.1f} s")
    except NotebookFailed as error:
        seconds = None
        print(f"FAILED: {error}", file=sys.stderr)
    if copy.exists():
        row = page.Row(NOTEBOOK.stem, status, seconds)
        print(f"Page: {page.write_html(copy, row, 'local', NOTEBOOK.parent)}")
    return int(status != "ok")


def record() -> int:
    """Write the requests of recipes.py to requests.json, if version 3 makes others now."""
    command = [str(ENVIRONMENT / "bin" / "python"), str(NOTEBOOK.with_name("recipes.py"))]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
