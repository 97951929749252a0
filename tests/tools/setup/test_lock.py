"""The lock, the conda file and the commands of the README say the same."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.setup import lock

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "tools" / "requirements"
LOCK = (REQUIREMENTS / "lock.txt").read_text()
CONDA = (ROOT / "environment.yml").read_text()
FILES = ("lock.txt", "uv.txt", "horovod.txt", "horovod-build.txt")


def test_environment_yml_is_what_make_lock_writes():
    assert lock.environment_text(LOCK) == CONDA
    pins = re.findall(r'^ +- "(.+)"$', CONDA.split("- pip:\n", 1)[1], re.MULTILINE)
    assert pins == lock.pins(LOCK) and len(pins) > 200


@pytest.mark.parametrize("name", FILES)
def test_all_but_torch_have_hashes(name):
    without = [
        block[0].split("==")[0]
        for block in lock.blocks((REQUIREMENTS / name).read_text())
        if not any("--hash=sha256:" in line for line in block)
    ]
    assert without == (["torch"] if name == "lock.txt" else [])


def test_torch_fits_cpu_cuda_and_mac_wheels():
    torch = next(pin for pin in lock.pins(LOCK) if pin.startswith("torch=="))
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+", torch)
    assert not [pin for pin in lock.pins(LOCK) if re.match(r"(nvidia|cuda|triton)", pin)]


def test_lock_keeps_what_base_in_asks_for():
    locked = {Requirement(pin).name: Requirement(pin).specifier for pin in lock.pins(LOCK)}
    for line in (REQUIREMENTS / "base.in").read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            version = str(locked[requirement.name]).removeprefix("==")
            assert requirement.specifier.contains(version), f"{line}: the lock has {version}"


@pytest.mark.parametrize("name", [*(f"tools/requirements/{f}" for f in FILES), "environment.yml"])
def test_no_place_of_one_machine_is_named(name):
    text = (ROOT / name).read_text()
    assert not re.search(r"://|file:|--index-url|--find-links|^/", text, re.MULTILINE)


COMPILED = """\
numpy==2.0.2 \\
    --hash=sha256:aa
    # via torch
nvidia-nccl-cu13==2.29 ; sys_platform == 'linux' \\
    --hash=sha256:bb
pandas==2.3.3 ; python_full_version >= '3.14' \\
    --hash=sha256:cc
torch==2.13.0+cpu \\
    --hash=sha256:dd
    # via -r tools/requirements/base.in
triton==3.7.1 ; sys_platform == 'linux' \\
    --hash=sha256:ee
"""


def test_lock_text_frees_torch_and_drops_cuda():
    text = lock.lock_text(COMPILED)
    assert lock.pins(text) == ["numpy==2.0.2", "torch==2.13.0"]
    assert "sha256:aa" in text and "sha256:dd" not in text
    assert "# via -r tools/requirements/base.in" in text


def test_no_grammar_of_iris_is_compiled_in_every_process():
    """jsonschema 4.25 and later do so where they find lark: base.in keeps it out."""
    assert not [pin for pin in lock.pins(LOCK) if re.match(r"(lark|rfc3987[-_]syntax)\b", pin)]
