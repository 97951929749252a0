"""A template's YAML is data, by whatever call it comes: it never runs a program."""

import uuid
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from local_sagemaker.pytest_plugin import BUCKET

TEMPLATES = Path(__file__).parent / "templates"
ATTACK = (TEMPLATES / "attack.yaml").read_text()
HARMLESS = (TEMPLATES / "harmless.yaml").read_text()


# Two of moto's modules read templates: one for stacks, one for what is asked before there is one.
CALLS = {
    "create_stack": lambda name: {"StackName": name},
    "create_change_set": lambda name: {
        "StackName": name,
        "ChangeSetName": "c",
        "ChangeSetType": "CREATE",
    },
    "validate_template": lambda name: {},
    "get_template_summary": lambda name: {},
    "create_stack_set": lambda name: {"StackSetName": name},
}


@pytest.mark.parametrize(
    ("call", "by"), [("create_stack", "TemplateURL"), *((name, "TemplateBody") for name in CALLS)]
)
def test_a_template_runs_no_program(emulator, tmp_path, call, by):
    path, name = tmp_path / "pwned", f"attack-{uuid.uuid4().hex[:8]}"
    text = ATTACK.replace("{path}", str(path))
    if by == "TemplateURL":
        emulator.put("attack.yaml", text)
        text = f"https://{BUCKET}.s3.amazonaws.com/attack.yaml"
    client = emulator.client("cloudformation")
    with pytest.raises(ClientError, match=r"\(ValidationError\)"):
        getattr(client, call)(**CALLS[call](name), **{by: text})
        # A set reads its template once it has instances.
        where = {"Accounts": ["0" * 12], "Regions": [client.meta.region_name]}
        client.create_stack_instances(StackSetName=name, **where)
    assert not path.exists()


def test_short_tags_still_work(emulator):
    client, name = emulator.client("cloudformation"), f"tags-{uuid.uuid4().hex[:8]}"
    client.create_stack(StackName=name, TemplateBody=HARMLESS)
    (stack,) = client.describe_stacks(StackName=name)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert outputs == {"Arn": f"arn:aws:s3:::{name}-bucket"}
    topics = emulator.client("sns").list_topics()["Topics"]
    arn = next(topic["TopicArn"] for topic in topics if name in topic["TopicArn"])
    topic = emulator.client("sns").get_topic_attributes(TopicArn=arn)["Attributes"]
    assert topic["DisplayName"] == "a-y"
