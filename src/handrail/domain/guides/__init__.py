"""Guides: what a file may say, what a condition means, which step is next, whether an output passes. Reads no files."""
