"""`python -m tools.bench [NAME ...]`: run all benchmarks, or those that are named."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys

from workshop.lesson import reference_results

NAMES = {
    "links": "all-reduces over narrow links, beside their bounds and the cost model",
    "steps": "steps of training on other links, ranks and sizes, beside what the model predicts",
    "tiers": "two tiers against gloo's all-reduce, in five jobs",
    "overlap": "how much of the sending DDP hides, by bandwidth and size of the buckets",
    "emulators": "local-sagemaker beside moto's server: start, memory, a job, requests a second",
}
LESSON = "07"  # which shows the results


def main() -> None:
    lines = "\n".join(f"  {name:<12}{title}" for name, title in NAMES.items())
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench",
        description=f"{__doc__}\n\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", help="default: all")
    parser.add_argument(
        "--runs", type=int, default=7, help="blocks of each measurement (default: 7)"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the results in notebooks/recorded/, for the lessons that show them",
    )
    args = parser.parse_args()
    unknown = set(args.name) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    # So that an emulator and its jobs end with this program, however it is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    logging.disable(logging.INFO)  # the SDK's
    os.environ["SAGEMAKER_SUPPRESS_V2_WARNING"] = "1"
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} before the start")
    for name in args.name or NAMES:
        print(f"\n{name}: {NAMES[name]}")
        load = os.getloadavg()[0]
        results = importlib.import_module(f"tools.bench.{name}").run(args.runs)
        if args.record:
            loads = [round(value, 1) for value in (load, os.getloadavg()[0])]
            path = reference_results.write(LESSON, name, {"load": loads, **results})
            print(f"kept in {path}")


if __name__ == "__main__":
    main()
