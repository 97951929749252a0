"""Atomic writes, safe reads and removals."""
