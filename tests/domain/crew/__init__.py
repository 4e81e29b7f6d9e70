"""Tests of handrail.domain.crew."""
