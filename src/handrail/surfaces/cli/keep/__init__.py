"""Commands under the heading Move and keep: import, export, the store."""
