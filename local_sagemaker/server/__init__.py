"""The HTTP face: who answers a request, what a wrong one gets, what is kept on disk."""

import sys

# jsonschema tries to import this, and nothing here checks IRIs: it compiles a grammar for 1.5 s.
sys.modules.setdefault("rfc3987_syntax", None)
