"""Says, in one line of JSON, which hyperparameters and which of the named variables it has.

Arguments: the names of environment variables.
"""

import json
import os
import sys

with open("/opt/ml/input/config/hyperparameters.json") as file:
    given = json.load(file)
print(
    "ECHO",
    json.dumps(
        {"hyperparameters": given, "environment": [os.environ.get(n) for n in sys.argv[1:]]}
    ),
)
