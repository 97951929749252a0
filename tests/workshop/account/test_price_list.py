"""AWS's price list: read row by row, in the form that AWS documents.

The rows below are no recording: no machine with a way to AWS was at hand. The form is AWS's (five
rows about the file, then columns, with the names that public quotations of 2025 and 2026 show), and
the numbers of us-east-1 are those that prices.toml quotes.
"""

import tomllib

import pytest
from click.testing import CliRunner

from workshop.account import price_list
from workshop.account.prices import idle_price, price_table
from workshop.cli import main

COLUMNS = (
    '"SKU","OfferTermCode","RateCode","TermType","PriceDescription","EffectiveDate",'
    '"StartingRange","EndingRange","Unit","PricePerUnit","Currency","usageType","operation"'
)


def row(usage, usd, unit="Hrs", term="OnDemand", start="0", currency="USD"):
    cells = ["S", "T", "R", term, "words, with a comma", "2026-11-01", start, "Inf"]
    return ",".join(f'"{one}"' for one in [*cells, unit, usd, currency, usage, "any"])


def file(offer, *rows, columns=COLUMNS):
    about = [
        '"FormatVersion","v1.0"',
        '"Disclaimer","This pricing list is for informational purposes only."',
        '"Publication Date","2026-11-05T20:59:55Z"',
        '"Version","20261105205955"',
        f'"OfferCode","{offer}"',
    ]
    return [f"{line}\r\n" for line in [*about, columns, *rows]]


SAGEMAKER = file(
    "AmazonSageMaker",
    row("EUW1-Train:ml.c5.xlarge", "0.15", term="Reserved"),
    row("EUW1-Train:ml.c5.xlarge", "0.2310000000"),
    row("EUW1-SpotTrain:ml.c5.xlarge", "0.07"),
    row("EUW1-Host:ml.m5.large", "0.128"),
    row("EUW1-Notebk:ml.m5.xlarge", "0.2570000000"),
    row("EUW1-Notebk:VolumeUsage.gp2", "0.154", unit="GB-Mo"),
    row("EUW1-Train:VolumeUsage.gp2", "0.154", unit="GB-Mo"),
    row("EUW1-Studio:KernelGateway-ml.m5.xlarge", "0.257"),
)
VPC = file(
    "AmazonVPC",
    row("EU-VpcEndpoint-Hours", "0.011", unit="Hrs"),
    row("EU-VpcEndpoint-Bytes", "0.01", unit="GB"),
    row("EU-PublicIPv4:InUseAddress", "0.005"),
    row("EU-PublicIPv4:IdleAddress", "0.006"),
)
EC2 = file(
    "AmazonEC2",
    row("EU-NatGateway-Hours", "0.048"),
    row("EU-RegionalNatGateway-Hours", "0.096"),
    row("EU-NatGateway-Bytes", "0.048", unit="GB"),
    row("EU-BoxUsage:c5.xlarge", "0.192"),
)
FILES = {"AmazonSageMaker": SAGEMAKER, "AmazonVPC": VPC, "AmazonEC2": EC2}


def opened(address):
    (offer,) = [name for name in FILES if f"/{name}/" in address]
    assert address.endswith("/eu-west-1/index.csv")
    return (line for line in FILES[offer])


def test_a_region_has_its_own_prices():
    found = price_list.read("eu-west-1", lambda _: None, opened)
    assert {name: (one.usd, one.per) for name, one in found.items()} == {
        "ml.c5.xlarge": (0.231, "hour"),
        "endpoint ml.m5.large": (0.128, "hour"),
        "notebook ml.m5.xlarge": (0.257, "hour"),
        "notebook-volume": (0.154, "GB-month"),
        "interface-endpoint": (0.011, "hour"),
        "public-ipv4": (0.005, "hour"),
        "nat-gateway": (0.048, "hour"),
    }
    assert {str(one.day) for one in found.values()} == {"2026-11-05"}
    assert set(found) <= {*price_table()["instances"], *price_table()["idle"]}


def test_what_is_no_price_on_demand_in_dollars_is_passed_over():
    rows = [
        row("NatGateway-Hours", "9", start="1000"),  # a discount for large amounts
        row("NatGateway-Hours", "9", currency="CNY"),
        row("NatGateway-Hours", "0.0450000000"),  # us-east-1 has no prefix for some
    ]
    (price,) = price_list.parse(file("AmazonEC2", *rows), "AmazonEC2")
    assert (price.name, price.usd) == ("nat-gateway", idle_price("nat-gateway").usd)


@pytest.mark.parametrize(
    "lines",
    [[], ["<html>\n"], file("AmazonVPC"), file("AmazonEC2", columns='"SKU","Price"')],
    ids=["empty", "a web page", "another service's", "other columns"],
)
def test_a_file_of_another_form_is_said(lines):
    with pytest.raises(price_list.PriceListError, match="is not the price list of AmazonEC2"):
        list(price_list.parse(lines, "AmazonEC2"))


def test_no_network_and_no_such_region_are_said():
    def none(address):
        raise OSError("Name or service not known")
        yield

    with pytest.raises(price_list.PriceListError, match="Check the connection"):
        price_list.read("eu-west-1", lambda _: None, none)
    with pytest.raises(price_list.PriceListError, match="is not a region's name"):
        price_list.read("Ireland", lambda _: None, opened)


def test_the_command_shows_both_regions_and_saves_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(price_list, "_lines", opened)
    monkeypatch.setenv("COLUMNS", "140")
    save = tmp_path / "rows.toml"
    done = CliRunner().invoke(main, ["prices", "eu-west-1", "--save", str(save)])
    assert done.exit_code == 0, done.output
    line = next(one for one in done.output.splitlines() if " nat-gateway " in one)
    assert "0.048" in line and "0.045" in line
    rows = tomllib.loads(save.read_text())
    assert rows["region"] == "eu-west-1"
    assert rows["instances"]["ml.c5.xlarge"]["usd_per_hour"] == 0.231
    assert rows["idle"]["notebook-volume"]["per"] == "GB-month"
    assert CliRunner().invoke(main, ["prices", "Ireland"]).exit_code == 2
