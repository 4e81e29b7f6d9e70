"""journal.md's tools, and what they take and answer."""
