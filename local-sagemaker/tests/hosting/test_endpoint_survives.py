"""An emulator that is killed or taken down: workers end, endpoints come back."""

import json
import os
import signal

from emulator_harness import processes_with, until, until_gone
from hosting_helpers import TRIPLE, script

from local_sagemaker.pytest_plugin import BUCKET

SLOW = TRIPLE.replace("import json", "import json, time").replace(
    "return [model", "time.sleep(600); return [model"
)


def test_kill_9_and_down_leave_no_worker_and_endpoints_come_back(mortal):
    mortal.deploy(mortal.model("mortal-1", script(TRIPLE)))
    broken = script("def model_fn(d): raise ValueError('never')")
    assert mortal.deploy(mortal.model("mortal-2", broken))["EndpointStatus"] == "Failed"
    uri = mortal.emulator.put("in/a.jsonl", "[1]\n")
    mortal.begin_transform("mortal-3", mortal.model("mortal-3", script(SLOW)), uri)
    until(lambda: processes_with("transform/mortal-3"))
    assert processes_with("endpoint/mortal-1")
    mortal.s3.delete_object(Bucket=BUCKET, Key="models/mortal-1/model.tar.gz")  # needed no more
    os.kill(mortal.emulator.running.pid, signal.SIGKILL)
    until_gone("endpoint/mortal-1", seconds=30)
    until_gone("transform/mortal-3", seconds=30)

    mortal.emulator.up()
    mortal.connect()
    description = mortal.until("mortal-1", lambda row: row["EndpointStatus"] == "InService")
    assert "FailureReason" not in description
    assert mortal.ask("mortal-1", [2]) == [6]
    assert mortal.api.describe_endpoint(EndpointName="mortal-2")["EndpointStatus"] == "Failed"
    job = mortal.api.describe_transform_job(TransformJobName="mortal-3")
    assert job["TransformJobStatus"] == "Failed"
    assert "the emulator ended while this job was running" in job["FailureReason"]
    saved = mortal.emulator.state / "transforms" / "mortal-3"
    assert [path.name for path in saved.iterdir()] == ["record.json"]

    for name in ("mortal-1", "mortal-2"):
        mortal.api.delete_endpoint(EndpointName=name)
    assert processes_with("endpoint/mortal") == []
    assert mortal.api.list_endpoints()["Endpoints"] == []
    assert not list((mortal.emulator.state / "endpoints").iterdir())

    mortal.deploy(mortal.model("down-1", script(TRIPLE)))
    mortal.begin_transform("down-2", mortal.model("down-2", script(SLOW)), uri)
    assert processes_with("endpoint/down-1")
    mortal.emulator.down()
    assert processes_with("endpoint/down-1") == processes_with("transform/down-2") == []
    record = mortal.emulator.state / "transforms" / "down-2" / "record.json"
    assert json.loads(record.read_text())["status"] == "Stopped"
