"""pipeline.md's tools: declared in `tools.py`, done in the modules beside it."""
