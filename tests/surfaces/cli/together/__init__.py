"""Tests of the commands under the heading Work together."""
