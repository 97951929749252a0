"""The failures of networks. Each needs the local endpoint, and instances of namespaces."""

from __future__ import annotations

from workshop.breaking.shown import Failure

JOBS: tuple[Failure, ...] = ()
