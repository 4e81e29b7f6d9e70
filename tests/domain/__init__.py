"""Tests of the domain, one file per module."""
