"""What a team values, and whether a plan violates it. Records and rules; no store."""
