"""Latency of InvokeEndpoint, with 1 client and with 8, beside the same model called in-process.

The model is a SavedModel of the workshop's network with weights that nobody trained: what an
answer costs does not depend on them. A request holds one image as JSON, and is sent by boto3. The
model's own signature is called by one thread, in a process that does nothing else.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from local_sagemaker import pytest_plugin
from tools.bench import jobs
from workshop.paths import DEMOS

REQUESTS = 480  # counted, of all clients together, in a run
WARM_UP = 20
CLIENTS = (1, 8)
BODY = json.dumps({"instances": [[[[7]] * 8] * 8]}).encode()
# argv: a folder to save the model in, and how many calls to time. Prints seconds, one a line.
IN_PROCESS = """
import sys, time
from common.keras2 import tf
from common.model_tf import build_model, save_model
save_model(build_model((8, 8, 1), 64), sys.argv[1])
call = tf.saved_model.load(sys.argv[1] + "/1").signatures["serving_default"]
image = tf.fill((1, 8, 8, 1), 7.0)
for number in range(int(sys.argv[2])):
    begin = time.perf_counter()
    call(images=image)["probabilities"].numpy()
    print("TOOK", time.perf_counter() - begin)
"""


def run(runs: int) -> None:
    """Measure and print. runs: of each number of clients, in turn."""
    from sagemaker.tensorflow import TensorFlowModel

    with jobs.emulator() as (emulated, folder):
        alone = _in_process(folder / "model")
        archive = folder / "model.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(folder / "model", arcname=".")
        model = TensorFlowModel(
            model_data=emulated.emulator.put("model.tar.gz", archive.read_bytes()),
            role=pytest_plugin.ROLE,
            framework_version=pytest_plugin.FRAMEWORK_VERSIONS["tensorflow"],
            sagemaker_session=emulated.session,
        )
        predictor = model.deploy(1, "ml.m5.xlarge")
        client = emulated.session.sagemaker_runtime_client
        invoke = {"EndpointName": predictor.endpoint_name, "ContentType": "application/json"}

        def seconds(_) -> float:
            begin = time.perf_counter()
            client.invoke_endpoint(**invoke, Body=BODY)["Body"].read()
            return time.perf_counter() - begin

        medians: dict[int, list[float]] = {count: [] for count in CLIENTS}
        for _ in range(runs):
            for count, values in medians.items():
                with ThreadPoolExecutor(count) as pool:
                    list(pool.map(seconds, range(WARM_UP)))
                    values.append(statistics.median(pool.map(seconds, range(REQUESTS))))
        predictor.delete_endpoint()
    table = Table("called", "median, ms", "of in-process")
    table.add_row("in-process, 1 thread", f"{1000 * alone:.2f}", "1")
    for count, values in medians.items():
        median = statistics.median(values)
        table.add_row(f"{count} clients", f"{1000 * median:.2f}", f"{median / alone:.1f}")
    Console(width=100).print(table)
    print(f"medians of {runs} runs of {REQUESTS} requests (in-process: of one); one image each")


def _in_process(folder: Path) -> float:
    command = [sys.executable, "-c", IN_PROCESS, str(folder), str(REQUESTS + WARM_UP)]
    done = subprocess.run(command, cwd=DEMOS, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("TOOK ")]
    return statistics.median(float(line.split()[1]) for line in lines[WARM_UP:])
