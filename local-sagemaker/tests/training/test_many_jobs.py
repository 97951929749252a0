"""Jobs one after the other and at once leave nothing: no process, file, thread, port or memory."""

import os
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from bandwidth_helpers import host_network
from emulator_harness import command_request, until, until_gone

from local_sagemaker.pytest_plugin import BUCKET, Emulator

MAX_GROWTH = 50 << 20  # bytes, from the end of the warm-up to the last job's
SETTLE_SECONDS = 60
SCRIPT = "import os; print('HELLO'); open('/opt/ml/model/m', 'w').write('x' * 1000)"

pytestmark = pytest.mark.namespaces  # else a ContainerEntrypoint is refused


@pytest.fixture
def busy(tmp_path, request):
    """An emulator of this test's own. Its temporary files would lie in `temporaries`."""
    (tmp_path / "temporaries").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path / "temporaries"))
        item = Emulator(tmp_path / "state", ["--grace", "2"])
    request.addfinalizer(item.down)
    item.client("s3").create_bucket(Bucket=BUCKET)
    item.mark, item.temporaries = f"many-{uuid.uuid4().hex[:10]}", tmp_path / "temporaries"
    return item


def run(emulator, count: int, at_once: int) -> None:
    """`count` jobs, `at_once` of them at any time; each is Completed."""
    api, waiting, started = emulator.client("sagemaker"), [], 0
    deadline = time.monotonic() + 60 + 30 * count
    while started < count or waiting:
        while started < count and len(waiting) < at_once:
            waiting.append(f"{emulator.mark}-{started}-{uuid.uuid4().hex[:8]}")
            command = [sys.executable, "-S", "-c", SCRIPT]
            api.create_training_job(**command_request(waiting[-1], command))
            started += 1
        time.sleep(0.05)
        for name in list(waiting):
            message = api.describe_training_job(TrainingJobName=name)
            if message["TrainingJobStatus"] not in ("InProgress", "Stopping"):
                assert message["TrainingJobStatus"] == "Completed", message.get("FailureReason")
                waiting.remove(name)
        assert time.monotonic() < deadline, waiting
    # A job's files are removed just after its end.
    until(lambda: {path.name for path in emulator.state.glob("jobs/*/*")} == {"record.json"})


def usage(emulator) -> dict[str, object]:
    """What the emulator and its jobs hold of the machine."""
    process = psutil.Process(emulator.running.pid)
    connections = process.net_connections("inet")
    return {
        "children": len(process.children(recursive=True)),
        "files": process.num_fds(),
        "threads": process.num_threads(),
        "ports": sorted(end.laddr.port for end in connections if end.status == psutil.CONN_LISTEN),
        "namespaces": sorted(map(os.readlink, Path(f"/proc/{process.pid}/ns").iterdir())),
        "temporaries": sorted(os.listdir(emulator.temporaries)),
        "own temporaries": sorted(os.listdir(emulator.state / "tmp")),
        "folders of jobs": [
            p.name for p in emulator.state.glob("jobs/*/*") if p.name != "record.json"
        ],
        "host": host_network(),
    }


def check_nothing_is_left(emulator, before: dict[str, object]) -> None:
    """As before, once idle connections and threads have been given back."""
    until_gone(emulator.mark, 60)

    def extra() -> dict:
        now = usage(emulator)
        # boto3 keeps up to ten idle connections to the emulator itself, and a thread serves each.
        changed = {k: (before[k], now[k]) for k in now if k not in SPARE and now[k] != before[k]}
        return changed | {k: (before[k], now[k]) for k in SPARE if now[k] > before[k] + SPARE[k]}

    until(lambda: not extra(), SETTLE_SECONDS, extra)


SPARE = {"files": 4, "threads": 4}


def memory(emulator) -> int:
    """Bytes that the emulator's process holds."""
    return psutil.Process(emulator.running.pid).memory_info().rss


def test_jobs_one_by_one_and_four_at_once_leave_nothing(busy):
    run(busy, 4, at_once=4)
    before = usage(busy)
    run(busy, 5, at_once=1)
    run(busy, 4, at_once=4)
    check_nothing_is_left(busy, before)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_jobs_and_eight_at_once_leave_nothing(busy):
    run(busy, 8, at_once=8)
    run(busy, 12, at_once=1)
    before, warm, began = usage(busy), memory(busy), time.monotonic()
    run(busy, 180, at_once=1)
    run(busy, 8, at_once=8)
    check_nothing_is_left(busy, before)
    grown = memory(busy) - warm
    print(
        f"180 + 8 jobs in {time.monotonic() - began:.0f} s; {warm >> 20} MB and {grown >> 20} more"
    )
    assert grown < MAX_GROWTH, f"{grown >> 20} MB more after 200 jobs"
