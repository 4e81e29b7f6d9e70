"""What is known beyond the work itself: facts as triples, plans that worked, what led to what. No store."""
