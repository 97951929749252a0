"""Write tools/requirements/*.txt and environment.yml from tools/requirements/*.in: `make lock`.

`uv pip compile` does the work. Two things are then changed in lock.txt, both about torch:

* `torch==X` keeps neither a local version (`+cpu`) nor hashes, so that a CPU wheel, a CUDA
  wheel or a Mac wheel may satisfy it;
* the CUDA packages that only the registry's Linux wheel of torch needs are left out. That
  wheel pins them itself, so whoever installs it still gets exact versions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.setup.environment import install_uv, uv_settings
from tools.setup.state import REQUIREMENTS, ROOT

OLDEST_PYTHON = "3.11"
CUDA_ONLY = re.compile(r"^(nvidia-|cuda-|triton\b)")
TOO_NEW = re.compile(r"python_full_version >= '3\.1[3-9]")
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[[^\]]*\])?==(?P<version>[^\s;]+)")

HEADER = """\
# Exact versions and hashes of everything in the kit, for Python 3.11 and 3.12, on Linux and
# macOS. Written by `make lock` from {source}; do not edit by hand.
"""
TORCH_NOTE = """\
# torch carries no hash, so that a CPU wheel, a CUDA wheel or a Mac wheel may satisfy the pin.
"""
CONDA_HEADER = """\
For conda users: the same pins as tools/requirements/lock.txt. Written by `make lock`.

    conda env create -f environment.yml && conda activate data-parallel-workshop
    pip install --no-deps -e ./local-sagemaker -e . && python -m tools.setup --horovod-here

Horovod is not in the list below: it is compiled against the TensorFlow and torch that stand there.
The last command does so, and needs a C++ compiler and make (conda install gxx make); without them
it says so, and everything but the Horovod parts works.
"""


def blocks(text: str) -> list[list[str]]:
    """Split a compiled requirements text into one list of lines per package."""
    result: list[list[str]] = []
    for line in text.splitlines():
        if PIN.match(line):
            result.append([line])
        elif result and line.startswith(" "):
            result[-1].append(line)
    return result


def free_torch(lines: list[str]) -> list[str]:
    """One package's lines, with torch's pin reduced to its public version."""
    match = PIN.match(lines[0])
    if match is None or match["name"] != "torch":
        return lines
    comments = [line for line in lines[1:] if line.lstrip().startswith("#")]
    return [f"torch=={match['version'].split('+')[0]}", *comments]


def pins(text: str) -> list[str]:
    """`name==version ; marker` of every package in a compiled requirements text."""
    return [block[0].rstrip(" \\") for block in blocks(text)]


def compile_requirements(source: Path, target: Path, *options: str, upgrade: bool) -> str:
    """Resolve `source` for every platform and return the text, without uv's header.

    The pins in the present `target` are kept where they still fit, unless `upgrade`.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / target.name
        if target.exists() and not upgrade:
            shutil.copy(target, output)
        command = [install_uv(), "pip", "compile", str(source), "--output-file", str(output)]
        command += ["--quiet"]
        command += ["--universal", "--fork-strategy=fewest", "--python-version", OLDEST_PYTHON]
        command += ["--generate-hashes", "--annotation-style=line", "--no-header", *options]
        # A CPU wheel offered on this machine must not decide what everyone's lock says.
        settings = uv_settings(Path(sys.executable))
        settings.pop("UV_FIND_LINKS", None)
        subprocess.run(command, check=True, cwd=ROOT, env=settings)
        return output.read_text()


def name_of(block: list[str]) -> str:
    """The package's name of one of `blocks`."""
    return block[0].partition("==")[0].partition("[")[0]


def lock_text(compiled: str) -> str:
    """lock.txt's text from uv's output."""
    packages = [
        free_torch(block)
        for block in blocks(compiled)
        if not CUDA_ONLY.match(block[0]) and not TOO_NEW.search(block[0])
    ]
    body = "\n".join(line for block in packages for line in block)
    return HEADER.format(source="tools/requirements/base.in") + TORCH_NOTE + body + "\n"


def environment_text(lock: str) -> str:
    """environment.yml's text: the lock's pins, for conda users."""
    lines = [
        *(f"# {line}".rstrip() for line in CONDA_HEADER.splitlines()),
        "name: data-parallel-workshop",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",  # Anaconda's own channels have terms, which a script cannot accept
        "dependencies:",
        f"  - python={OLDEST_PYTHON}",
        "  - pip",
        "  - pip:",
    ]
    for pin in pins(lock):
        lines.append(f'      - "{pin}"')
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    """Replace `path` in one step, so that an interruption leaves the old file."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)
    print(f"wrote {path.relative_to(ROOT)} ({len(pins(text)) or len(text.splitlines())} entries)")


def main() -> None:
    upgrade = "--upgrade" in sys.argv[1:]
    base, target = REQUIREMENTS / "base.in", REQUIREMENTS / "lock.txt"
    texts = {target: lock_text(compile_requirements(base, target, upgrade=upgrade))}
    texts[ROOT / "environment.yml"] = environment_text(texts[target])
    # Horovod's own needs are in lock.txt already: only its hash is used from here.
    for name, options in {"uv": [], "horovod": ["--no-deps"], "horovod-build": []}.items():
        source, target = REQUIREMENTS / f"{name}.in", REQUIREMENTS / f"{name}.txt"
        compiled = compile_requirements(source, target, *options, upgrade=upgrade)
        texts[target] = HEADER.format(source=f"tools/requirements/{name}.in") + compiled
    for path, text in texts.items():
        write(path, text)


if __name__ == "__main__":
    main()
