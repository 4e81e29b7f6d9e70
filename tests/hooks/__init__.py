"""Tests of `handrail.hooks`."""
