"""Small experiments for real ranks: `workshop.start_ranks` runs these functions on each."""
