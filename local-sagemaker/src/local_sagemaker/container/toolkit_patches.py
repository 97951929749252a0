"""Fixes to the sagemaker-training toolkit, for an instance that a learner watches.

None changes what a script sees: its arguments, variables and directories stay the
toolkit's.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from sagemaker_training import _entry_point_type, entry_point, environment, errors, modules, process

from local_sagemaker.container import job_notes

IMAGE = "LOCAL_SAGEMAKER_IMAGE"  # the variable that names the image asked for
# Seconds that a script's own children may go on writing after it has ended.
AFTER_THE_END = 2.0


class _WholeLines:
    """A stream whose `read` gives whole lines.

    The toolkit takes whatever has arrived for complete lines, so `print("a", "b")` of an
    unbuffered script can become two lines of log, and a metric can be torn in half.
    """

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self.stream, self.rest = stream, b""

    async def read(self, size: int) -> bytes:
        while True:
            data = await self.stream.read(size)
            self.rest += data
            if not data or b"\n" in data or len(self.rest) > 16 * size:
                break
        whole, newline, self.rest = self.rest.rpartition(b"\n")
        if not data or not newline:
            whole, self.rest = whole + newline + self.rest, b""
        return whole + newline


async def _run_async(cmd, processes_per_host, env, cwd, stderr, error_classes=None, **kwargs):
    """The toolkit's function of this name, which waits for the output's end.

    A child that a script left behind holds that output open, and the job would seem to
    train until MaxRuntimeInSeconds. Here the script's end is the end.
    """
    script = await asyncio.create_subprocess_exec(
        *cmd, env=env, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=stderr, **kwargs
    )
    streams = [stream for stream in (script.stdout, script.stderr) if stream]
    read = [
        asyncio.ensure_future(process.watch(_WholeLines(stream), processes_per_host, error_classes))
        for stream in streams
    ]
    while script.returncode is None:  # asyncio's own `wait` waits for the output's end, too
        await asyncio.sleep(0.02)
    await asyncio.wait(read, timeout=AFTER_THE_END)
    for stream in streams:
        stream.feed_eof()
    return script.returncode, await asyncio.gather(*read), script


def telling(install: Callable) -> Callable:
    """The toolkit's installation of source_dir, which says what it leaves out."""

    def run(name: str, path: str = environment.code_dir, capture_error: bool = False) -> None:
        install(name, path, capture_error)
        command = _entry_point_type.get(path, name) is _entry_point_type.COMMAND
        if command and modules.has_requirements(path):
            print(
                f"[local] requirements.txt is not installed: SageMaker does that before a .py "
                f"alone. Let {name} begin with: pip install -r requirements.txt",
                flush=True,
            )

    return run


def patch() -> None:
    """Apply the patches in this process."""
    process.run_async = _run_async
    entry_point.install = telling(entry_point.install)
    modules.install = constrained(modules.install)
    modules.install_requirements = constrained(modules.install_requirements)
    process.get_tensorflow_exception_classes = tensorflow_errors


def tensorflow_errors() -> list:
    """The names of TensorFlow's errors, for which the toolkit imports it, for seconds."""
    spec = find_spec("tensorflow") if "tensorflow" in os.environ.get(IMAGE, "") else None
    if spec is None or spec.origin is None:
        return [errors.ExecuteUserScriptError]
    source = Path(spec.origin).with_name("python") / "framework" / "errors_impl.py"
    return [*re.findall(r"^class (\w+)\(", source.read_text(), re.MULTILINE), "XlaRuntimeError"]


FRAMEWORKS = ("torch", "tensorflow", "keras", "tf-keras", "horovod")
NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
# In pip's log, each line after the time: why it gave up.
PIP_ERROR = re.compile(
    r"^\S+ +(ERROR: (?!ResolutionImpossible).*|The user requested .*)$", re.MULTILINE
)


def constraints(text: str) -> list[str]:
    """Lines for pip's constraints. text: a requirements.txt."""
    named = {
        re.sub(r"[._]", "-", match[1]).lower()
        for line in text.splitlines()
        if (match := NAME.match(line))
    }
    lines = []
    for name in FRAMEWORKS:
        version = job_notes.version(name)
        if version and name not in named:
            lines.append(f"{name}=={version}")
        if name == "torch" and version.endswith("+cpu") and "torch" not in named:
            # The builds of PyTorch's own packages that fit a torch without CUDA; others do not
            # load. torch 2.13.0 has torchaudio 2.13.0 and torchvision 0.28.0: they go together.
            _, minor, patch = version.removesuffix("+cpu").split(".")
            lines += [f"torchvision==0.{int(minor) + 15}.{patch}+cpu", f"torchaudio=={version}"]
    return lines


def constrained(install: Callable) -> Callable:
    """The toolkit's `install`, whose pip keeps to `constraints`, and whose error says why."""

    def run(path: str, capture_error: bool = False) -> None:
        file = Path(path, "requirements.txt")
        lines = constraints(file.read_text(errors="replace") if file.is_file() else "")
        with tempfile.TemporaryDirectory() as folder:
            constraints_file, log = Path(folder, "constraints.txt"), Path(folder, "log")
            constraints_file.write_text("\n".join(lines))
            previous = os.environ.get("PIP_CONSTRAINT")
            every = " ".join(filter(None, [previous, str(constraints_file)]))
            with mock.patch.dict(os.environ, PIP_CONSTRAINT=every, PIP_LOG=str(log)):
                try:
                    install(path, capture_error)
                except (errors.InstallRequirementsError, errors.InstallModuleError) as error:
                    # The toolkit looks for names of Python's error classes, and pip has none.
                    text = log.read_text(errors="replace") if log.is_file() else ""
                    error.output = error.output or "\n".join(dict.fromkeys(PIP_ERROR.findall(text)))
                    raise

    return run
