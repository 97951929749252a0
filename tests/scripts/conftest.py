"""The fixtures of these tests; what else they share is in script_harness."""

from script_harness import digits, run, trained_alone

__all__ = ["digits", "run", "trained_alone"]
