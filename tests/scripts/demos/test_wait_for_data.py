"""wait_for_data.py: what a step waits for is the requests, and workers hide a part of them."""

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from workshop.paths import DEMOS

DELAY_SECONDS = 0.02  # of each request
RECORDS = np.random.default_rng(3).integers(0, 10, (20, 3073), dtype=np.uint8)


@pytest.fixture
def server():
    """Serves /N, a record, and /all, each after a delay; counts the requests."""
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            time.sleep(DELAY_SECONDS)
            content = RECORDS if self.path == "/all" else RECORDS[int(self.path[1:])]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content.tobytes())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", paths
        running.shutdown()


def test_a_step_waits_for_each_request(server, tmp_path):
    place, paths = server
    small = [f"{place}/{number}" for number in range(len(RECORDS))]
    (tmp_path / "addresses.json").write_text(json.dumps({"small": small, "large": f"{place}/all"}))
    flags = ["--rounds", "1", "--steps", "3", tmp_path / "addresses.json"]
    script = [sys.executable, DEMOS / "wait_for_data.py", *flags]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    wait = {record["way"]: record["wait"] for record in records}
    assert set(wait) == {"one by one", "one by one again", "2 workers", "1 file"}
    assert min(record["compute"] for record in records) > 0
    # Ten pictures a batch, and ten requests one after the other.
    assert min(wait["one by one"], wait["one by one again"]) > 10 * DELAY_SECONDS
    assert wait["1 file"] < 10 * DELAY_SECONDS, "no request at all"
    assert wait["2 workers"] < wait["one by one"], "nobody fetched ahead"
    assert paths.count("/all") == 1


def test_a_record_is_read_as_cifar_10_stores_it(monkeypatch):
    # Not syspath_prepend: it wants a whole pkg_resources, and the SDK brings one of its own.
    monkeypatch.setattr(sys, "path", [str(DEMOS), *sys.path])
    import wait_for_data

    pixels, labels = wait_for_data.parse(RECORDS.tobytes())
    assert labels.tolist() == RECORDS[:, 0].tolist()
    assert pixels.shape == (20, 3, 32, 32) and pixels[4, 1, 2, 3] == pytest.approx(
        RECORDS[4, 1 + 1024 + 2 * 32 + 3] / 255
    )
