"""Five fixes to the sagemaker-training toolkit, for an instance that a learner watches.

None changes what a script sees: its arguments, variables and directories stay the
toolkit's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tarfile
from collections.abc import Callable

from sagemaker_training import (
    _entry_point_type,
    entry_point,
    environment,
    errors,
    files,
    modules,
    process,
)

from local_sagemaker.container.requirements import constrained

SOURCE = "sourcedir.tar.gz"  # training/channels.py puts it there
IMAGE = "LOCAL_SAGEMAKER_IMAGE"  # the variable that names the image asked for
# The toolkit imports TensorFlow, for seconds, only to learn the names of its errors.
TENSORFLOW_ERRORS = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "XlaRuntimeError",
]


UNPACKED_LIMIT = 4 * 1024**3  # bytes of a source_dir, unpacked
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
    let_go = asyncio.ensure_future(_end_streams(script))
    output = await asyncio.gather(
        *(
            process.watch(
                _WholeLines(stream) if stream else None, processes_per_host, error_classes
            )
            for stream in (script.stdout, script.stderr)
        )
    )
    code = await _return_code(script)
    let_go.cancel()
    return code, output, script


async def _return_code(script: asyncio.subprocess.Process) -> int:
    """asyncio's own `wait` waits for the output's end too."""
    while script.returncode is None:
        await asyncio.sleep(0.02)
    return script.returncode


async def _end_streams(script: asyncio.subprocess.Process) -> None:
    await _return_code(script)
    await asyncio.sleep(AFTER_THE_END)
    for stream in (script.stdout, script.stderr):
        if stream:
            stream.feed_eof()


def bounded(extract, limit: int = UNPACKED_LIMIT):
    """The toolkit's extraction, for archives that unpack to at most `limit` bytes.

    It already keeps every file inside its directory. But a small archive can unpack to more than
    the disk holds, and here the disk is the learner's own.
    """

    def extract_bounded(tar: tarfile.TarFile, path: str) -> None:
        total = 0
        for member in tar:
            total += member.size
            if total > limit:
                raise errors.ClientError(
                    f"The archive of source_dir unpacks to more than {limit:,} bytes, the "
                    "emulator's limit. Pass data as a channel, and keep it out of source_dir."
                )
        extract(tar, path)

    return extract_bounded


def brought(download: Callable[[str, str], None]) -> Callable[[str, str], None]:
    """The toolkit's download of source_dir, which the emulator has put into TMPDIR already."""

    def fetch(url: str, path: str) -> None:
        archive = os.path.join(os.environ.get("TMPDIR", ""), SOURCE)
        if os.path.isfile(archive):
            shutil.move(archive, path)
        else:
            download(url, path)

    return fetch


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
    files._safe_extractall = bounded(files._safe_extractall)
    files.s3_download = brought(files.s3_download)
    entry_point.install = telling(entry_point.install)
    modules.install = constrained(modules.install)
    modules.install_requirements = constrained(modules.install_requirements)
    known = TENSORFLOW_ERRORS if "tensorflow" in os.environ.get(IMAGE, "") else []
    process.get_tensorflow_exception_classes = lambda: known or [errors.ExecuteUserScriptError]
