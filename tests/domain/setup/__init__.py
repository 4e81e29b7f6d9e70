"""Tests of handrail.domain.setup."""
