"""Tests of the commands under the heading Serve."""
