"""A document is approved, and another put in its place."""
