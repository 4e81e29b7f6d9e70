"""Tests of handrail.outside.tracking."""
