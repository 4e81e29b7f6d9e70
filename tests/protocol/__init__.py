"""Tests of handrail.protocol."""
