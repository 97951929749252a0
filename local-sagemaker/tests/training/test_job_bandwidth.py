"""What a job asks of its links, and what is refused."""

import pytest
from emulator_harness import executable, request

from local_sagemaker.cluster import bandwidth, linux
from local_sagemaker.cluster.bandwidth import Bandwidth, parse
from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.training.connectivity import BANDWIDTH, bandwidth_for_job


@pytest.mark.parametrize(
    ("words", "rate", "latency", "output"),
    [
        ("200mbit", 200e6, 0, "200 Mbit/s"),
        ("200MBit", 200e6, 0, "200 Mbit/s"),
        ("2.5gbit", 2.5e9, 0, "2.5 Gbit/s"),
        ("750kbit", 750e3, 0, "750 kbit/s"),
        ("50mbit 1ms", 50e6, 1e-3, "50 Mbit/s and 1 ms"),
        ("50mbit  0.25ms", 50e6, 0.25e-3, "50 Mbit/s and 0.25 ms"),
        ("50mbit 300us", 50e6, 300e-6, "50 Mbit/s and 0.3 ms"),
    ],
)
def test_a_rate_and_a_latency(words, rate, latency, output):
    result = parse(words)
    assert (result.rate, str(result)) == (rate, output)
    assert result.latency == pytest.approx(latency)
    assert parse("wide") is None


WRONG = ("", "fast", "-1mbit", "200mbit 1", "200mbit 1ms 3", "wide 1ms", "200mbit; reboot")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        *((words, "is not a setting of links: expected a rate") for words in WRONG),
        ("200gbit", "from 100kbit to 100gbit"),
        ("200mbit 2s", "at most 1s"),
    ],
)
def test_what_is_no_setting(words, why):
    with pytest.raises(ValueError) as caught:
        parse(words)
    assert why in str(caught.value)


def job_request(words: str | None, count: int = 2) -> dict:
    body = request("a-job")
    body["ResourceConfig"]["InstanceCount"] = count
    return body | ({} if words is None else {"Environment": {BANDWIDTH: words}})


def test_what_a_job_asks_for():
    assert bandwidth_for_job(job_request(None)) is None
    assert bandwidth_for_job(job_request("200mbit 1ms")).latency == 1e-3
    assert bandwidth_for_job(job_request("wide")) is None
    # One instance has no link, but a wrong word is still refused.
    assert bandwidth_for_job(job_request("50mbit", count=1)) is None
    with pytest.raises(AwsError, match="'x' is not a setting"):
        bandwidth_for_job(job_request("x", count=1))


FAKE_TC = """#!/bin/sh
# A kernel that has some disciplines and not others: $REFUSED.
while read -r line || [ -n "$line" ]; do
  echo "$line" >> "$SEEN"
  case "$line" in *" $REFUSED "*) echo "Error: Specified qdisc kind is unknown." >&2; exit 1;; esac
done
"""


UNKNOWN = "(Error: Specified qdisc kind is unknown.)"
KERNELS = {  # what tc refuses -> what the job's log says, and whether the rate holds
    "nothing": (True, ["links: 80 Mbit/s and 2 ms between instances, asked for by the job"]),
    "netem": (
        True,
        [
            "links: 80 Mbit/s between instances, asked for by the job",
            f"links are not delayed: this kernel refuses netem {UNKNOWN}",
        ],
    ),
    "tbf": (False, [f"links are wide: this machine cannot shape them {UNKNOWN}"]),
    None: (
        False,
        [
            "links are wide: this machine cannot shape them "
            "(the command `tc` is missing: install the package iproute2)"
        ],
    ),
}


@pytest.mark.parametrize("refused", KERNELS)
def test_what_a_kernel_lacks_is_said(tmp_path, monkeypatch, refused):
    """A job goes on with less; a port is delayed first and limited then."""
    seen = tmp_path / "seen"
    if refused:
        executable(tmp_path / "tc", FAKE_TC)
    monkeypatch.setattr(linux, "SYSTEM_FOLDERS", ())
    for name, value in {"PATH": tmp_path, "SEEN": seen, "REFUSED": refused or ""}.items():
        monkeypatch.setenv(name, str(value))
    result = bandwidth.shape_ports(["p", "q"], Bandwidth(80e6, 0.002))
    assert result == KERNELS[refused]
    if refused == "nothing":
        first, second, *_ = seen.read_text().splitlines()
        assert first.startswith("qdisc replace dev p root handle 1: netem delay 2000us ")
        assert second.startswith("qdisc replace dev p parent 1:1 tbf rate 80000000 ")
    if refused == "tbf":
        assert "qdisc del dev p root" in seen.read_text()
