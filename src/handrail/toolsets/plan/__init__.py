"""plan.md's tools, a module for each of its categories."""
