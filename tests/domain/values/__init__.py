"""Tests of handrail.domain.values."""
