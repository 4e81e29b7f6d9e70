"""Tests of journal.md's tools."""
