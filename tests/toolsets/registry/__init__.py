"""Tests of registry.md's tools."""
