"""Guides: what a file may contain, what a condition means, which step is next, which output passes. Reads no files."""
