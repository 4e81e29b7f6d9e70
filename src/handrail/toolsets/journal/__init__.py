"""journal.md's tools."""
