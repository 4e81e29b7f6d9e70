"""Tests of what counts as a text, a word and a question."""
