"""Atomic writes, safe reads and removals, and archives that stay in their folder."""
