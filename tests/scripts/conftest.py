"""The fixtures of these tests; what else they share is in script_harness."""

from script_harness import digits, run, ten_steps

__all__ = ["digits", "run", "ten_steps"]
