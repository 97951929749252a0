"""requirements.txt beside a script: installed on the instance, and nowhere else."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from endpoint_harness import estimator, start

NAME = "workshop_test_package"
SCRIPT = f"import {NAME}\nprint('IMPORTED', {NAME}.VALUE, flush=True)\n"


def wheel(folder: Path) -> None:
    """The smallest wheel that pip takes."""
    files = {
        f"{NAME}.py": "VALUE = 42\n",
        f"{NAME}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n",
        f"{NAME}-1.0.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(f"{name},sha256={_hash(text)},{len(text)}\n" for name, text in files.items())
    files[f"{NAME}-1.0.dist-info/RECORD"] = record + f"{NAME}-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{NAME}-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.fixture
def source(tmp_path):
    """A source_dir whose requirements come from a folder, with no network."""
    wheels, folder = tmp_path / "wheels", tmp_path / "source"
    for path in (wheels, folder):
        path.mkdir()
    wheel(wheels)
    (folder / "script.py").write_text(SCRIPT)

    def needs(*lines: str) -> str:
        head = ["--no-index", f"--find-links {wheels}"]
        (folder / "requirements.txt").write_text("\n".join([*head, *lines]) + "\n")
        return str(folder)

    return needs


def test_a_package_for_the_job_alone(endpoint, sdk, source):
    folder = source(f"{NAME}==1.0")
    one = estimator(sdk, "script.py", source_dir=folder, instance_count=1)
    job = endpoint.wait(start(one))
    assert job.status == "Completed", job.description.get("FailureReason")
    assert job.lines("IMPORTED") == ["42"]
    here = subprocess.run([sys.executable, "-c", f"import {NAME}"], capture_output=True, text=True)
    assert "ModuleNotFoundError" in here.stderr
    assert not list(Path(sys.prefix).glob(f"lib/python*/site-packages/{NAME}*"))


def test_a_package_that_is_not_to_be_had(endpoint, sdk, source):
    folder = source("workshop-no-such-package==7.0")
    one = estimator(sdk, "script.py", source_dir=folder, instance_count=1)
    job = endpoint.wait(start(one))
    assert job.status == "Failed"
    reason = job.description["FailureReason"]
    assert reason.startswith("AlgorithmError: InstallRequirementsError")
    assert "pip install -r requirements.txt" in reason
    told = [line for lines in job.log.values() for line in lines]
    assert any("workshop-no-such-package==7.0" in line for line in told)  # pip's own words
    assert job.lines("IMPORTED") == []
