"""The HTTP face: who answers a request, what a wrong one gets, what is kept on disk."""
