"""Tests of the guide domain: the format, conditions, checks, the next step."""
