"""Tests of `handrail init` and `handrail doctor`, with real files and real servers."""
