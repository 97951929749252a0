"""What can go wrong with data, apart from bugs."""


class DataError(Exception):
    """Something outside the code stops the work; the message names the remedy."""
