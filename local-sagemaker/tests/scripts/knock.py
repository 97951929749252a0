"""Listens, tries for some seconds to reach the other instance, S3 and the proxy, and says how.

Arguments: the job's host names, and "closed" if the other instance is not to be reached.
"""

import os
import socket
import sys
import time

LISTENING_SECONDS = {True: 5, False: 60}  # closed: as long as the other may still knock
# The gateway answers or refuses at once, but a busy machine may have lost a packet, or taken a
# second to find its hardware address: only a long silence is one.
GATEWAY_SECONDS = 40


def knock(host: str, port: int, seconds: float, silent_seconds: float = 0) -> str:
    """ "reached", or the error of the last try.

    seconds: how long to try again. silent_seconds: how long, where there is no answer at all.
    """
    began = time.monotonic()
    while True:
        try:
            socket.create_connection((host, port), timeout=5 if silent_seconds else 1).close()
            return "reached"
        except OSError as error:
            silent = isinstance(error, TimeoutError)
            if time.monotonic() > began + (max(seconds, silent_seconds) if silent else seconds):
                return type(error).__name__
            time.sleep(0.1)


closed = "closed" in sys.argv
others = set(sys.argv[1:]) - {"closed", os.environ["LOCAL_SAGEMAKER_HOST"]}
listener = socket.create_server(("", 5000))
for other in others:
    print("PEER", knock(other, 5000, 3 if closed else 60), flush=True)
print("S3", knock("10.88.0.1", 4566, 1, GATEWAY_SECONDS), flush=True)
print("PROXY", knock("10.88.0.1", 3128, 1, GATEWAY_SECONDS), flush=True)
if others:  # stay until the other has knocked
    listener.settimeout(LISTENING_SECONDS[closed])
    try:
        listener.accept()
    except TimeoutError:
        print("NOBODY CAME", flush=True)
