"""Before and after spending: prices, stacks, preflight, clean-up."""
