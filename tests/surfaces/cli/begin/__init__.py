"""Tests of the commands under the heading Begin."""
