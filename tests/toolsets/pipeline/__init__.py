"""Tests of pipeline.md's tools."""
