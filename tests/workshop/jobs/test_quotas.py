"""What a class needs of AWS's quotas, and the request for it."""

from workshop.jobs import quotas


def test_quotas_are_those_of_all_seats_at_once():
    seat, twenty = quotas.needed(1), quotas.needed(20, notebooks=True)
    assert all(twenty[name] == 20 * count for name, count in seat.items())
    assert twenty["ml.m5.xlarge for notebook instance usage"] == 20
    assert seat["Number of instances across all training jobs"] == 5
    assert seat["ml.m5.large for endpoint usage"] == 1


def test_the_request_asks_only_for_what_is_lacking(command):
    needs = {"a for training job usage": 40, "b for endpoint usage": 20}
    text = quotas.request(needs, 20, "eu-west-1", {"a for training job usage": 15})
    assert "- a for training job usage: please raise to 40 (now 15)" in text
    assert "- b for endpoint usage: please raise to 20" in text
    have = {"a for training job usage": 40, "b for endpoint usage": 20.0}
    assert "large enough for 20 seats" in quotas.request(needs, 20, "eu-west-1", have)
    code, out = command("class", "quotas", "20", "--region", "eu-west-1")
    assert code == 0 and "Region: eu-west-1." in out and "20 learners" in out
