"""Benchmarks: `make bench`, or `python -m tools.bench [NAME ...]`.

Each prints medians, and ratios or bounds measured in the same run. None of them is a
test: a slow or busy machine gives slow figures, not a failure.
"""
