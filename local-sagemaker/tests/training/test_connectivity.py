"""Jobs in a VPC: who reaches whom, S3 and a package index, as the network's own rules say."""

import itertools
import socket
import sys

import pytest
from emulator_harness import command_request, completed, ended, request
from vpc_helpers import ANYWHERE, Network, knocking

from local_sagemaker.cluster.spec import Connectivity
from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.pytest_plugin import BUCKET
from local_sagemaker.pytest_plugin import emulator as own_emulator
from local_sagemaker.training.connectivity import connectivity_for_job, service_port

NUMBERS = itertools.count(30)


@pytest.fixture
def network(emulator):
    return Network(emulator, next(NUMBERS))


def reach(emulator, network, **changes) -> Connectivity:
    body = request("none", VpcConfig=network.config, **changes)
    return connectivity_for_job(emulator.aws, body, emulator.env["AWS_DEFAULT_REGION"])


def test_without_a_vpc_everything_is_reached(emulator):
    aws = emulator.aws
    assert connectivity_for_job(aws, request("none"), "us-east-1") == Connectivity()
    isolated = connectivity_for_job(aws, request("none", EnableNetworkIsolation=True), "us-east-1")
    assert isolated == Connectivity(emulator=False, internet=False)


@pytest.mark.namespaces
def test_jobs_reach_the_service_with_which_the_emulator_was_started(monkeypatch, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(60)
        place = ("10.88.0.1", service.getsockname()[1])
        monkeypatch.setenv("LOCAL_SAGEMAKER_SERVICE", str(place[1]))
        code = f"import socket; print('MET', socket.create_connection({place}).recv(9).decode())"
        body = command_request("service", [sys.executable, "-c", code])
        with own_emulator(tmp_path / "state") as started:
            started.client("sagemaker").create_training_job(**body)
            with service.accept()[0] as connection:
                connection.sendall(b"tracking")
            assert started.wait("service").lines("MET") == ["tracking"]
        assert connectivity_for_job(None, {"EnableNetworkIsolation": True}, "").service == 0


def test_a_job_cannot_ask_for_a_service(emulator):
    body = request("none", Environment={"LOCAL_SAGEMAKER_SERVICE": "5000"})
    assert connectivity_for_job(emulator.aws, body, "us-east-1").service == 0


@pytest.mark.parametrize("port", ["http://127.0.0.1:5000", "3128", "-1"])
def test_what_is_no_port(monkeypatch, port):
    monkeypatch.setenv("LOCAL_SAGEMAKER_SERVICE", port)
    with pytest.raises(EmulatorError, match="must be the number of a port"):
        service_port()


def test_a_new_group_lets_nobody_in(emulator, network):
    assert reach(emulator, network).closed_reason == (
        f"no inbound rule of {network.group} allows all TCP from its own members"
    )


@pytest.mark.parametrize(
    ("rule", "open_"),
    [
        ({}, True),
        ({"protocol": "tcp", "FromPort": 0, "ToPort": 65535}, True),
        ({"protocol": "tcp", "FromPort": 22, "ToPort": 22}, False),
        ({"protocol": "udp", "FromPort": 0, "ToPort": 65535}, False),
        ({"peer": ANYWHERE}, True),
        ({"peer": "192.168.0.0/16"}, False),
    ],
)
def test_inbound_rules(emulator, network, rule, open_):
    network.let_in(**rule)
    assert (reach(emulator, network).closed_reason == "") == open_


def test_outbound_rules(emulator, network):
    network.let_in()
    network.let_nothing_out()
    assert "no outbound rule" in reach(emulator, network).closed_reason
    network.let_out()
    assert reach(emulator, network).closed_reason == ""
    network.s3_endpoint()
    assert not reach(emulator, network).s3  # the group lets nothing out but to itself


@pytest.mark.parametrize("kind", ["Gateway", "Interface"])
def test_ways_to_s3(emulator, network, kind):
    assert not reach(emulator, network).s3
    network.internet_gateway(network.table)  # of no use to instances without a public address
    assert not reach(emulator, network).s3
    network.s3_endpoint(RouteTableIds=[])  # in no route table
    assert not reach(emulator, network).s3
    if kind == "Interface":
        options = {"VpcEndpointType": kind, "RouteTableIds": [], "SubnetIds": [network.subnet]}
        network.s3_endpoint(**options)
    else:
        network.s3_endpoint()
    assert reach(emulator, network) == Connectivity(
        reach(emulator, network).closed_reason, internet=False
    )


@pytest.mark.parametrize("public", [True, False])
def test_a_nat_gateway_leads_out_if_its_own_subnet_does(emulator, network, public):
    network.nat(public)
    result = reach(emulator, network)
    assert (result.s3, result.internet) == (public, public)
    assert not reach(emulator, network, EnableNetworkIsolation=True).internet


@pytest.mark.namespaces
def test_instances_of_an_open_group_reach_each_other(emulator, network):
    network.let_in()
    network.s3_endpoint()
    job = completed(knocking(emulator, "vpc-open-group", network.config, 2))
    assert job.lines("PEER") == ["reached", "reached"]
    assert job.lines("S3") == ["reached", "reached"]
    assert set(job.lines("PROXY")) == {"ConnectionRefusedError"}  # no NAT: no way to an index
    assert not any("do not reach" in line for line in job.lines("[local]"))


@pytest.mark.namespaces
def test_instances_of_a_closed_group_do_not(emulator, network):
    network.s3_endpoint()
    job = completed(knocking(emulator, "vpc-closed-group", network.config, 2, "closed"))
    assert job.lines("PEER") == ["TimeoutError", "TimeoutError"]  # no answer at all, as on AWS
    assert len(job.lines("NOBODY CAME")) == 2
    assert job.lines("S3") == ["reached", "reached"]
    (output,) = [line for line in job.lines("[local]") if "do not reach" in line]
    assert network.group in output


@pytest.mark.namespaces
def test_with_a_nat_the_proxy_is_there(emulator, network):
    network.let_in()
    network.nat(public=True)
    job = knocking(emulator, "vpc-with-nat", network.config, 1)
    assert job.lines("PROXY") == ["reached"]


def test_without_a_way_to_s3_the_download_fails(emulator, network):
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data"}
    channel = {"ChannelName": "training", "DataSource": {"S3DataSource": source}}
    body = request("vpc-no-s3", VpcConfig=network.config, InputDataConfig=[channel])
    job = ended(emulator, body)
    assert job.status == "Failed"
    assert job.description["FailureReason"].startswith(
        "ClientError: Data download failed:Please ensure that the subnet's route table has a route"
    )
    phases = [transition["Status"] for transition in job.description["SecondaryStatusTransitions"]]
    assert phases == ["Starting", "Downloading", "Failed"]


@pytest.mark.namespaces
def test_without_a_way_to_s3_and_without_input_the_upload_fails(emulator, network):
    job = knocking(emulator, "vpc-no-s3-no-input", network.config, 1)
    assert job.lines("S3") == ["ConnectionRefusedError"]
    assert job.description["FailureReason"].startswith(
        "ClientError: Artifact upload failed:Please ensure that the subnet's route table"
    )
