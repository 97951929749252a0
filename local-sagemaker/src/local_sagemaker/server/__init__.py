"""The HTTP server: who answers a request, and what a wrong one gets."""
