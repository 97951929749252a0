"""parameter_server.py whose sync mode doesn't wait: it applies each gradient as it comes."""

import sys
from pathlib import Path

DEMOS = Path(__file__).resolve().parents[2] / "scripts" / "demos"
sys.path.insert(0, str(DEMOS))

import parameter_server  # noqa: E402

parameter_server.serve_sync = parameter_server.serve_async
parameter_server.main()
