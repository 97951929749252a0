"""What only makers of the workshop run: set-up, sync, the site, slides, benchmarks."""
