"""Renew the recorded evidence in recorded/: python tests/workshop/diagnosis/record.py

It runs failures on two ranks, and leaves of each record what the rules need.
"""

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

from workshop.diagnosis.evidence import Collective, Evidence, Rank
from workshop.diagnosis.reading import read_record
from workshop.failures.ranks import mpirun, script_options, to_end
from workshop.launch.processes import Line
from workshop.paths import ROOT

RECORDED = Path(__file__).with_name("recorded")
# name -> the cause; with "fixed", a job against which nothing speaks
NAMES = {
    "only_rank_0": "one rank makes another call",
    "different_order": "the ranks call in different orders",
    "other_type": "the tensors differ in size or type",
    "group_of_some": "not all ranks made the group",
    "early_stop": "one rank ended early",
    "long_evaluation": "one rank does something else",
    "missing_rank": "rendezvous",
    "dead_worker": "data worker died",
    "nan_on_one_rank": "not a number",
    "forgotten_sampler": "same data on all ranks",
    "batch_norm": "batch norm per rank",
    "straggler": "straggler",
    "tiny_buckets": "tiny buckets",
    "slow_input": "slow input",
    "slow_input fixed": "",
    "straggler fixed": "",
}
MAX_COLLECTIVES = 700


def save(evidence: Evidence, path: Path) -> None:
    """Write what the rules read, without this machine's folders."""
    ranks = []
    for rank in evidence.ranks:
        calls = [list(dataclasses.astuple(call)) for call in rank.collectives[-MAX_COLLECTIVES:]]
        ranks.append({"note": rank.note, "calls": calls, "aborted": rank.aborted})
    lines = [[line.rank, line.text] for line in evidence.lines[-60:]]
    content = {"ranks": ranks, "lines": lines, "statuses": evidence.statuses}
    text = json.dumps(content, separators=(",", ":")).replace(f"{ROOT}/", "/kit/")
    text = text.replace(f"{Path(sys.prefix)}/", "/venv/")
    text = text.replace(f"{Path(sys.base_prefix)}/", "/python/")
    path.write_text(text.replace(f"{Path(sys.prefix).resolve()}/", "/venv/") + "\n")


def load(path: Path) -> Evidence:
    """What `save` wrote."""
    content = json.loads(path.read_text())
    evidence = Evidence(path.stem, statuses=content["statuses"])
    evidence.lines = [Line(*line) for line in content["lines"]]
    for row in content["ranks"]:
        calls = [
            Collective(*(tuple(part) if isinstance(part, list) else part for part in call))
            for call in row["calls"]
        ]
        rank = Rank(row["note"]["rank"], row["note"], calls, aborted=row["aborted"])
        evidence.ranks.append(rank)
    return evidence


def main() -> None:
    """Record the failures that are named, or all."""
    RECORDED.mkdir(exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        way, _, fixed = name.partition(" ")
        with tempfile.TemporaryDirectory() as folder:
            done = to_end(mpirun(way, [*script_options(bool(fixed)), "--save-to", folder]))
        save(read_record(done.record), RECORDED / f"{name.replace(' ', '_')}.json")
        print(name, done.statuses, flush=True)


if __name__ == "__main__":
    main()
