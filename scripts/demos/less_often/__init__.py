"""Ways to train in which ranks send less: rarely, or few numbers."""
