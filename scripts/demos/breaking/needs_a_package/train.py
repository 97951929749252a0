"""A script with a requirements.txt beside it. It runs only if that could be installed."""

import argparse

argparse.ArgumentParser(description=__doc__).parse_args()
print("trained", flush=True)
