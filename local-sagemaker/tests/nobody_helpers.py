"""Run this kit's local_sagemaker as an ordinary user, with a Python that every user can run."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from emulator_harness import captured

import local_sagemaker

PACKAGE = Path(local_sagemaker.__file__).parent
PATH_OF_A_USER = "/usr/local/bin:/usr/bin:/bin"
BECOME_NOBODY = """
import os, sys
sys.path.insert(0, sys.argv[1])
os.environ["PYTHONPATH"] = sys.argv[1]
os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def run_as_nobody(
    code: str, tmp_path: Path, *arguments: str, files: Iterable[Path] = ()
) -> subprocess.CompletedProcess[str]:
    """Run `code` as user 65534; sys.argv[1] is the folder of a copy, the arguments follow.

    PATH is what Debian gives an ordinary user: without /usr/sbin, where `tc` is.

    files: copied into that folder, too. The modules that a job's supervisor is made of import
    nothing outside the standard library, so a Python without packages will do; without one the
    test is skipped.
    """
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("no Python that other users can run")
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "local_sagemaker")
    for file in files:
        shutil.copy(file, copy)
    for path in [copy, tmp_path, *tmp_path.parents]:
        if str(path).startswith("/tmp/"):
            path.chmod(0o755)
    command = [python, "-c", BECOME_NOBODY + code, str(copy), *arguments]
    return captured(command, cwd="/", timeout=60, env=os.environ | {"PATH": PATH_OF_A_USER})
