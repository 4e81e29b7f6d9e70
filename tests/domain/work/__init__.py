"""Tests of handrail.domain.work."""
