"""Tests of handrail.toolsets."""
