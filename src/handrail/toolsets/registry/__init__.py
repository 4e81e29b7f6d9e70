"""registry.md's tools, a module for each of its modules."""
