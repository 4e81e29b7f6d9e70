"""Tests of plan.md's tools."""
