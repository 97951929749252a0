"""Stops the notebook instance that it runs on when nobody has used it for a while.

Asks Jupyter's own API: a kernel that runs a cell is use, and so is anything that a kernel or a
terminal did lately, and the set-up as long as it runs. A page that is merely open is not. A
Jupyter that does not answer does nothing either. Python's standard library and boto3; the
instance's role must allow StopNotebookInstance.
"""

import argparse
import datetime
import fcntl
import json
import ssl
import time
import urllib.request

JUPYTER = "https://localhost:8443"  # where a notebook instance has it, without a token
METADATA = "/opt/ml/metadata/resource-metadata.json"  # where SageMaker writes the instance's name


def ask(address):
    """What Jupyter answers. Its certificate is its own, and the way there is this machine's."""
    context = ssl._create_unverified_context() if address.startswith("https") else None
    with urllib.request.urlopen(address, timeout=10, context=context) as answer:
        return json.load(answer)


def seconds(moment):
    """Jupyter's time, such as 2026-11-21T10:00:00.123Z, in seconds since 1970."""
    form = "%Y-%m-%dT%H:%M:%S.%f%z" if "." in moment else "%Y-%m-%dT%H:%M:%S%z"
    return datetime.datetime.strptime(moment.replace("Z", "+0000"), form).timestamp()


def last_use(jupyter, known, now):
    """When Jupyter was last used, in seconds since 1970. known: what was found before."""
    kernels = ask(jupyter + "/api/kernels")
    # No other state is use in itself: a kernel that nobody has connected to is "starting" for ever.
    if any(use["execution_state"] == "busy" for use in kernels):
        return now
    used = [*kernels, *ask(jupyter + "/api/terminals")]
    return max([known, *(seconds(use["last_activity"]) for use in used)])


def works(lock):
    """Whether a program holds the lock. It lets go when it ends, however that happens."""
    try:
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # nobody has made it yet
        return False
    return False


def stop(metadata):
    """Stop this instance. Its disk stays; so do the files under /home/ec2-user/SageMaker."""
    import boto3  # not before it is needed: the tests of the rest have no need of it

    with open(metadata) as file:
        about = json.load(file)
    region = about["ResourceArn"].split(":")[3]
    client = boto3.client("sagemaker", region_name=region)
    client.stop_notebook_instance(NotebookInstanceName=about["ResourceName"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True, help="without use, before it stops")
    parser.add_argument("--every", type=float, default=60, help="seconds from look to look")
    parser.add_argument("--jupyter", default=JUPYTER)
    parser.add_argument("--metadata", default=METADATA)
    parser.add_argument("--working", default="", help="a lock file: held is use")
    given = parser.parse_args()
    used = time.time()  # a fresh start is use
    while True:
        now = time.time()
        if works(given.working):
            used = now
        try:
            used = last_use(given.jupyter, used, now)
        except (OSError, ValueError, KeyError) as error:
            print(f"Jupyter does not answer: {error}", flush=True)
        idle = (now - used) / 60
        print(f"{idle:.1f} of {given.minutes:g} minutes without use", flush=True)
        if idle >= given.minutes:
            try:
                stop(given.metadata)
                print("Told SageMaker to stop this instance.", flush=True)
                return
            except Exception as error:  # whatever it is: the next look tries again
                print(f"Cannot stop this instance: {error}", flush=True)
        time.sleep(given.every)


if __name__ == "__main__":
    main()
