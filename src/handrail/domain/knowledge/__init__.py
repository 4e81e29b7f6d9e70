"""What is known beside the work itself: facts as triples, plans that worked, what led to what. No store."""
