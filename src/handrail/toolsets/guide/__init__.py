"""guide.md's tools, all in one module."""
