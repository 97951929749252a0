"""Fails in the way that --mode says. --where: only on this host (others wait)."""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--mode")
parser.add_argument("--where", default="")
parser.add_argument("--model_dir")
args = parser.parse_args()
print("BEGUN", socket.gethostname(), flush=True)
if args.where and socket.gethostname() != args.where:
    time.sleep(600)
if args.mode == "raise":  # and what it has started lives on
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    raise ValueError("the batch size must divide the data")
if args.mode == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if args.mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if args.mode == "saves":

    def save(*_):
        with open(os.environ["SM_MODEL_DIR"] + "/last.txt", "w") as stream:
            stream.write("saved on SIGTERM")
        sys.exit(0)

    signal.signal(signal.SIGTERM, save)
    print("WAITS", flush=True)
time.sleep(600)
