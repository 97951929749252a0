"""The one error that data_prep raises on purpose."""

from __future__ import annotations


class DataError(Exception):
    """Something outside the code stops the work; the message names the remedy."""
