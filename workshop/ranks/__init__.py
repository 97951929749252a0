"""Real ranks for a notebook: processes of this machine that wait for functions to run.

    ranks = workshop.start_ranks(4)
    ranks.run(function, argument)       # function(argument) on all four at once; four results
    ranks.stop()

`pool` is the notebook's side, `child` is what each process runs.
"""

from workshop.ranks.pool import RankFailed, Ranks, start_ranks

__all__ = ["RankFailed", "Ranks", "start_ranks"]
