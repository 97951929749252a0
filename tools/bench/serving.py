"""Latency of InvokeEndpoint, with 1 client and with 32, beside the same model called in-process.

The model is a SavedModel of the workshop's network with weights that nobody trained: what an
answer costs does not depend on them. A request holds one image as JSON. In-process is the model's
signature called on an array, by one thread, in a process that does nothing else.

boto3 needs more of a processor for a request than the emulator does, so clients send requests that
were signed before the clock started (a signature holds for 15 minutes). One client through boto3 is
measured beside them.
"""

from __future__ import annotations

import http.client
import io
import json
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from rich.console import Console
from rich.table import Table

from tools.bench import jobs
from workshop.paths import DEMOS

REQUESTS = 960  # counted, of all clients together, in a run
WARM_UP = 20
START_SECONDS = 180
BEGIN_SECONDS = 60
NAME = "bench-serving"
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
    begun = time.perf_counter()
    call(images=image)["probabilities"].numpy()
    print("TOOK", time.perf_counter() - begun)
"""


def run(runs: int) -> None:
    """Measure and print. runs: of each number of clients, in turn."""
    with jobs.emulator() as (emulator, folder):
        alone = _in_process(folder / "model", REQUESTS)
        _deploy(emulator, folder / "model")
        rows = {
            "InvokeEndpoint, boto3": (partial(_through_boto3, emulator), 1),
            "InvokeEndpoint, 1 client": (partial(_signed_before, emulator), 1),
            "InvokeEndpoint, 32 clients": (partial(_signed_before, emulator), 32),
        }
        measured = {title: [] for title in rows}
        for _ in range(runs):
            for title, how in rows.items():
                measured[title].append(_measure(*how))
        emulator.sagemaker.delete_endpoint(EndpointName=NAME)
    table = Table("called", "median, ms", "99th percentile, ms", "requests/s")
    _add(table, "in-process, 1 thread", [(alone, sum(alone))])
    for title, found in measured.items():
        _add(table, title, found)
    Console(width=100).print(table)
    print(f"medians of {runs} runs of {REQUESTS} requests (in-process: of one); one image each")


def _add(table: Table, title: str, runs: list[tuple[list[float], float]]) -> None:
    """A row. runs: of each, the seconds of every request, and of all together."""
    middle = statistics.median(statistics.median(one) for one, _ in runs)
    slow = statistics.median(statistics.quantiles(one, n=100)[-1] for one, _ in runs)
    rate = statistics.median(len(one) / all_together for one, all_together in runs)
    table.add_row(title, f"{1000 * middle:.2f}", f"{1000 * slow:.2f}", f"{rate:.0f}")


def _in_process(folder: Path, calls: int) -> list[float]:
    command = [sys.executable, "-c", IN_PROCESS, str(folder), str(calls + WARM_UP)]
    done = subprocess.run(command, cwd=DEMOS, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("TOOK ")]
    return [float(line.split()[1]) for line in lines][WARM_UP:]


def _deploy(emulator: jobs.JobsEmulator, folder: Path) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        tar.add(folder, arcname=".")
    emulator.s3.put_object(Bucket=jobs.BUCKET, Key="model.tar.gz", Body=raw.getvalue())
    api, where = emulator.sagemaker, f"s3://{jobs.BUCKET}/model.tar.gz"
    container = {"Image": "tensorflow-inference", "ModelDataUrl": where}
    api.create_model(ModelName=NAME, ExecutionRoleArn=jobs.ROLE, PrimaryContainer=container)
    variant = {"VariantName": "AllTraffic", "ModelName": NAME, "InstanceType": "ml.m5.xlarge"}
    api.create_endpoint_config(
        EndpointConfigName=NAME, ProductionVariants=[variant | {"InitialInstanceCount": 1}]
    )
    api.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
    deadline = time.monotonic() + START_SECONDS
    while (told := api.describe_endpoint(EndpointName=NAME))["EndpointStatus"] != "InService":
        if told["EndpointStatus"] == "Failed" or time.monotonic() > deadline:
            raise RuntimeError(f"{NAME}: {told.get('FailureReason', told['EndpointStatus'])}")
        time.sleep(jobs.POLL_SECONDS)


def _measure(make: Callable[[], Callable[[], None]], count: int) -> tuple[list[float], float]:
    """(the seconds of every request, those of all together) with `count` clients at once.

    make: makes a client; calling that sends a request and waits for its answer.
    """
    clients = [make() for _ in range(count)]

    def times(client: Callable[[], None]) -> list[float]:
        found = []
        for _ in range(REQUESTS // count):
            begun = time.perf_counter()
            client()
            found.append(time.perf_counter() - begun)
        return found

    with ThreadPoolExecutor(count) as pool:
        for _ in range(2):  # uncounted: connections are made, threads started
            list(pool.map(lambda client: client(), clients))
        begun = time.perf_counter()
        found = list(pool.map(times, clients))
        return list(chain.from_iterable(found)), time.perf_counter() - begun


def _through_boto3(emulator: jobs.JobsEmulator) -> Callable[[], None]:
    meta = emulator.sagemaker.meta
    client = boto3.session.Session(*emulator.key, region_name=meta.region_name).client(
        "sagemaker-runtime",
        endpoint_url=meta.endpoint_url,
        config=Config(retries={"max_attempts": 0}),
    )
    invoke = {"EndpointName": NAME, "ContentType": "application/json", "Body": BODY}
    return lambda: client.invoke_endpoint(**invoke)["Body"].read()


def _signed_before(emulator: jobs.JobsEmulator) -> Callable[[], None]:
    meta = emulator.sagemaker.meta
    url = f"{meta.endpoint_url}/endpoints/{NAME}/invocations"
    request = AWSRequest("POST", url, {"Content-Type": "application/json"}, BODY)
    SigV4Auth(Credentials(*emulator.key), "sagemaker", meta.region_name).add_auth(request)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=BEGIN_SECONDS)

    def ask() -> None:
        connection.request("POST", urlsplit(url).path, BODY, dict(request.headers))
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {said[:500]!r}")

    return ask
