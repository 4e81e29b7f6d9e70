"""Commands under the heading Serve."""
