"""Benchmarks: run by hand, from the repository's root, with the project's own Python. Never part of the tests."""
