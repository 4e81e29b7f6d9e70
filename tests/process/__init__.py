"""Real processes: what only shows when Handrail runs as its users run it."""
