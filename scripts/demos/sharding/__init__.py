"""Data parallelism in which no rank holds everything: a small GPT, ZeRO-1, bytes held and sent."""
