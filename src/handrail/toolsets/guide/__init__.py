"""guide.md's tools."""
