"""Models that cannot be loaded, workers that end or hang: the reason is told, nothing is stuck."""

import io
import json
import re
import sys
import time
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError
from emulator_harness import client_of, processes_with, until
from hosting_helpers import PATIENCE, TRIPLE, archive, script

from local_sagemaker.api.runtime import RuntimeApi
from local_sagemaker.core.records import Record
from local_sagemaker.core.s3_input import DataError
from local_sagemaker.hosting import worker
from local_sagemaker.hosting.endpoint_run import MAX_RESTARTS, EndpointRun
from local_sagemaker.hosting.model import Container, fetch
from local_sagemaker.hosting.runtime.__main__ import load
from local_sagemaker.hosting.runtime.http import CannotLoad
from local_sagemaker.protocol.bodies import RequestBody


def test_a_model_that_cannot_be_loaded(served):
    name = "broken-1"
    failing = script("def model_fn(d): raise ValueError('no weights here')")
    description = served.deploy(served.model(name, failing))
    assert description["EndpointStatus"] == "Failed"
    assert description["FailureReason"].startswith(
        "The primary container for production variant AllTraffic did not pass the ping health check"
    )
    assert "no weights here" in description["FailureReason"]
    with pytest.raises(ClientError, match="of account"):
        served.ask(name, [1])
    assert processes_with(f"endpoint/{name}") == []
    served.api.delete_endpoint(EndpointName=name)


BROKEN = {
    "imports": ("import no_such_module", None, "No module named 'no_such_module'"),
    "empty": (None, None, "it holds readme.txt. Expected a SavedModel"),
    "both": ("def transform_fn(): ...\ndef input_fn(): ...", None, "transform_fn beside input_fn"),
    "program": (TRIPLE, "serve.py", "code/serve.py is not in the model's archive"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_why_a_model_cannot_be_loaded(tmp_path, monkeypatch, name):
    code, program, why = BROKEN[name]
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "inference", None)  # removed again, as the path
    if program:
        monkeypatch.setenv("SAGEMAKER_PROGRAM", program)
    (tmp_path / "readme.txt").touch()
    if code:
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "inference.py").write_text(code)
    with pytest.raises(CannotLoad, match=re.escape(why)):
        load(tmp_path)


CUT = archive(script(TRIPLE * 50))[:60]


@pytest.mark.parametrize("data", [b"no archive", CUT], ids=["garbage", "cut"])
def test_an_archive_that_is_none(served, tmp_path, data):
    uri = served.emulator.put("models/none.tar.gz", data)
    with pytest.raises(DataError, match=r"cannot be unpacked as a tar.gz archive"):
        fetch(served.emulator.aws, Container("x", "", uri, {}), "us-east-1", tmp_path / "a" / "b")


def test_an_archive_that_climbs_stays_in_its_folder(served, tmp_path):
    uri = served.emulator.put("models/escapes.tar.gz", archive({"../../outside.txt": "x"}))
    folder = tmp_path / "a" / "b"
    fetch(served.emulator.aws, Container("x", "", uri, {}), "us-east-1", folder)
    assert list(tmp_path.rglob("outside.txt")) == list(folder.rglob("outside.txt")) != []


def test_model_data_that_is_not_there(served):
    description = served.deploy(served.model_of("missing-1", "s3://lessons-data/nothing.tar.gz"))
    assert description["EndpointStatus"] == "Failed"
    assert "Could not find model data at s3://lessons-data/nothing" in description["FailureReason"]


def test_a_model_that_takes_too_long(served):
    text = "import time\ndef model_fn(d): print('loading', flush=True); time.sleep(600)"
    name = served.model("slow-start-1", script(text))
    begun = time.monotonic()
    run = running(served, name, {"ContainerStartupHealthCheckTimeoutInSeconds": 4})
    assert run.settled.wait(PATIENCE)
    assert run.record.status == "Failed" and time.monotonic() - begun >= 4
    assert "no answer to /ping within 4 s" in run.record.data["reason"]
    assert "loading" in run.record.data["reason"]


ENDS = TRIPLE.replace("return json.loads(data)", "return json.loads(data) or os._exit(7)")


def test_a_worker_that_ends_is_started_again_but_not_for_ever(served):
    name = "ends-1"
    served.deploy(served.model(name, script("import os" + ENDS)))
    once = client_of(served.emulator, "sagemaker-runtime")
    for _ in range(MAX_RESTARTS + 1):
        assert served.ask(name, [1]) == [3]
        with pytest.raises(ClientError, match="as the model process exited") as refused:
            once.invoke_endpoint(EndpointName=name, ContentType="application/json", Body=b"[]")
        assert refused.value.response["OriginalStatusCode"] == 0
    description = served.until(name, lambda row: row["EndpointStatus"] == "Failed")
    ends = f"ended {MAX_RESTARTS + 1} times, at last with exit code 7"
    assert ends in description["FailureReason"]
    served.until_log(name, "[local] the worker ended (exit code 7); started again")
    assert processes_with(f"endpoint/{name}") == []


HANGS = """
import json, time
def model_fn(model_dir): return None
def transform_fn(model, data, content_type, accept):
    time.sleep(json.loads(data))
    return "done"
"""


def running(served, name: str, variant: dict | None = None, seconds: float = 60) -> EndpointRun:
    """An endpoint's run in this process, with limits of the test's own."""
    container = Container(name, "", f"s3://lessons-data/models/{name}/model.tar.gz", {})
    fields = {"name": name, "region": "us-east-1", "container": vars(container)}
    fields |= {"arn": f"arn:{name}", "stream": "AllTraffic/i-1", "config": name}
    fields["variant"] = {"VariantName": "AllTraffic"} | (variant or {})
    folder = served.emulator.state / "by-hand" / name
    record = Record.create(folder, {}, "Creating", **fields)
    run = EndpointRun(record, served.emulator.aws, seconds)
    run.thread.start()
    return run


def test_an_answer_that_takes_too_long(served):
    run = running(served, served.model("hangs-1", script(HANGS)), seconds=20)
    try:
        assert run.settled.wait(PATIENCE) and run.record.status == "InService"
        assert run.ask(b"0", {}).data == b"done"
        first, run.seconds = run.worker, 1.0
        environ = {"wsgi.input": RequestBody(io.BytesIO(b"500"), "3", chunked=False)}
        signature = SimpleNamespace(region="us-east-1", verify_body=lambda _: None)
        response = RuntimeApi(SimpleNamespace(runs={"hangs-1": run})).invoke(
            "hangs-1", SimpleNamespace(environ=environ), signature
        )
        assert response.status == "424 ModelError"
        message = json.loads(response.get_data())
        assert message["OriginalStatusCode"] == 0
        assert message["OriginalMessage"].startswith("Your invocation timed out while waiting")
        assert message["Message"].startswith("Received server error (0) from primary")
        run.seconds = PATIENCE
        until(lambda: run.worker is not first and run.ready.is_set(), PATIENCE)  # it was replaced
        assert run.ask(b"0", {}).data == b"done"
    finally:
        run.end()
    assert processes_with("endpoint/hangs-1") == []


def test_a_worker_tells_of_its_own_end(served, tmp_path):
    env = worker.environment(
        tmp_path, Container("x", "", None, {}), "endpoint/none", "r", served.emulator.aws
    )
    (tmp_path / "model").mkdir()
    output: list[str] = []
    process = worker.Worker(tmp_path, env, output.extend)
    try:
        with pytest.raises(worker.StartError, match=r"exit code 1\)\s.*it holds no file"):
            process.wait_until_ready(PATIENCE)
        assert output == list(process.tail)
        with pytest.raises(worker.NotTaken):  # so that the next worker may be asked instead
            process.ask(b"[1]", {}, PATIENCE)
    finally:
        process.close()
