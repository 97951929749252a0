"""A stand-in: the real package exists only in AWS's images."""
