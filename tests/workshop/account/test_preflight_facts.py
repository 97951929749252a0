"""What preflight knows offline is what the installed SDK, botocore and EC2's answers say."""

from datetime import date

import botocore.session
import pytest
from moto.utilities.utils import load_resource
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

from workshop.account.preflight.facts import FACTS, facts, source
from workshop.jobs.job_preview import preview_session

CODE = "\n".join(path.read_text() for path in FACTS.parent.glob("*.py"))


@pytest.mark.parametrize("name", facts()["sources"])
def test_each_source_has_an_address_a_day_and_a_use(name):
    row = facts()["sources"][name]
    assert row["address"].startswith("https://") and isinstance(row["read"], date)
    assert f'"{name}"' in CODE, "no rule uses it"
    assert str(row["read"]) in source(name)


def test_the_list_of_efa_types_is_ec2s():
    types = load_resource("ec2/resources/instance_types.json")
    model = botocore.session.get_session().get_service_model("sagemaker")
    training_types = model.shape_for("TrainingInstanceType").enum
    there = [name for name in training_types if name.removeprefix("ml.") in types]
    assert len(there) > 200
    efa = {name for name in there if types[name.removeprefix("ml.")]["NetworkInfo"]["EfaSupported"]}
    assert "ml.p6e-gb200.36xlarge" in training_types and "p6e-gb200.36xlarge" not in types
    assert facts()["efa"]["types"] == sorted(efa | {"ml.p6e-gb200.36xlarge"})


@pytest.fixture(scope="module")
def session():
    return preview_session("aws")


def hyperparameters(session, kind, distribution, **others) -> dict:
    """What the SDK makes of a distribution."""
    settings = session.job_settings("x") | {"entry_point": "train_tf.py", "instance_count": 2}
    return kind(distribution=distribution, **settings, **others).hyperparameters()


def test_every_strategy_that_preflight_knows_is_known_to_the_sdk(session):
    inner = {"smdistributed": {"dataparallel": {"enabled": True}}}
    for key in facts()["strategies"]:
        torch = key in ("torch_distributed", "pytorchddp")
        parameters = hyperparameters(
            session,
            PyTorch if torch else TensorFlow,
            {key: inner.get(key, {"enabled": True})},
            framework_version="2.2.0" if torch else "2.11.0",
            py_version="py310" if torch else "py39",
            instance_type="ml.p4d.24xlarge",
        )
        assert [
            name for name in parameters if name.startswith("sagemaker_") and "enabled" in name
        ], key
