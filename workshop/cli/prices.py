"""workshop prices: AWS's list prices in a region, beside those that the kit counts with."""

from __future__ import annotations

from pathlib import Path

import click

from workshop.cli.shared import WrongUse, print_table


@click.command()
@click.argument("region")
@click.option("--save", type=click.Path(path_type=Path), help="Write rows for a prices.toml there.")
@click.option("--all", "everything", is_flag=True, help="Types that the lessons do not use, too.")
def prices(region, save, everything) -> None:
    """Download AWS's price list for REGION, and show what the lessons use there.

    Needs the internet and no account; EC2's file, which has the NAT gateway, takes minutes. The
    kit's own table is us-east-1's. (Nobody has run this against AWS yet.)
    """
    from workshop.account import price_list
    from workshop.account.prices import price_table

    try:
        found = price_list.read(region, click.echo)
    except price_list.PriceListError as error:
        raise WrongUse(str(error)) from error
    ours = price_table()
    here = {name: row.get("usd_per_hour") for name, row in ours["instances"].items()}
    here |= {name: row["usd"] for name, row in ours["idle"].items()}
    rows = []
    for name in sorted(found if everything else set(found) & set(here)):
        price, known = found[name], here.get(name)
        shown = "" if known is None else f"{known:g}"
        rows.append((name, f"{price.usd:g}", price.per, str(price.day), shown))
    print_table(("what", f"USD, {region}", "per", "of", f"USD, {ours['region']}"), rows)
    missing = [name for name in here if name not in found and name not in ("s3", "ecr", "logs")]
    if missing:
        click.echo(f"AWS's list for {region} has no price for: {', '.join(sorted(missing))}.")
    if save:
        save.write_text(price_list.as_toml(found.values(), region), encoding="utf-8")
        click.echo(f"Rows for workshop/account/prices.toml: {save}")
