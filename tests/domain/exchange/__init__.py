"""Tests of handrail.domain.exchange."""
