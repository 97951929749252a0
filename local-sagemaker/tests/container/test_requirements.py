"""requirements.txt beside a script: installed on the instance, and nowhere else."""

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from emulator_harness import completed, estimator, start

from local_sagemaker.container.toolkit_patches import constraints

NAME = "workshop_test_package"
SCRIPT = f"""
import importlib.metadata as found
import {NAME}
print("IMPORTED", {NAME}.VALUE, flush=True)
print("VERSIONS", found.version("torchvision"), found.version("torch"), flush=True)
"""
# Where torch is built for CPUs alone, the torchvision that fits it.
PIN = next((begin for begin in constraints("") if begin.startswith("torchvision")), None)


def wheel(folder: Path, name: str, version: str, needs: str = "", code: str = "") -> None:
    """The smallest wheel that pip takes."""
    info = f"{name}-{version}.dist-info"
    wants = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wants}",
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(f"{path},sha256={_hash(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.fixture
def job_with(emulator, sdk, tmp_path):
    """A function: run a job with these requirements, which come from a folder: no network."""
    (tmp_path / "script.py").write_text(SCRIPT)
    wheel(tmp_path, NAME, "1.0", code="VALUE = 42\n")
    # A torchvision that fits this machine's torch, and a newer one that would draw another torch.
    wheel(tmp_path, "torchvision", (PIN or "==1.0").partition("==")[2])
    wheel(tmp_path, "torchvision", "99.0", "torch==99.0")
    wheel(tmp_path, "torch", "99.0")

    def run(*lines: str):
        head = ["--no-index", "--find-links ."]
        (tmp_path / "requirements.txt").write_text("\n".join([*head, *lines]) + "\n")
        options = {"source_dir": str(tmp_path), "instance_count": 1}
        return emulator.wait(start(estimator(sdk, "script.py", **options)))

    return run


def test_a_package_for_the_job_alone_and_the_frameworks_stay_as_they_are(job_with):
    job = completed(job_with(f"{NAME}==1.0", "torchvision"))
    assert job.lines("IMPORTED") == ["42"]
    torch = constraints("")[0].partition("==")[2]
    fits = PIN.partition("==")[2] if PIN else "1.0"
    assert job.lines("VERSIONS") == [f"{fits} {torch}"]
    here = subprocess.run([sys.executable, "-c", f"import {NAME}"], capture_output=True, text=True)
    assert "ModuleNotFoundError" in here.stderr
    assert not list(Path(sys.prefix).glob(f"lib/python*/site-packages/{NAME}*"))


def test_a_package_that_is_not_to_be_had(job_with):
    job = job_with("workshop-no-such-package==7.0")
    assert job.status == "Failed"
    reason = job.description["FailureReason"]
    assert reason.startswith("AlgorithmError: InstallRequirementsError")
    assert "pip install -r requirements.txt" in reason
    assert 'ErrorMessage "ERROR: Could not find a version that satisfies' in reason
    assert "No matching distribution found for workshop-no-such-package==7.0" in reason
    message = [line for lines in job.log.values() for line in lines]
    assert any("workshop-no-such-package==7.0" in line for line in message)  # pip's own words
    assert job.lines("IMPORTED") == []


def test_what_a_requirements_file_names_is_not_held():
    assert not any(line.startswith(("torch", "keras")) for line in constraints("Torch==1.0\nkeras"))
    assert any(line.startswith("tensorflow==") for line in constraints("tensorflow-io\n# torch"))
