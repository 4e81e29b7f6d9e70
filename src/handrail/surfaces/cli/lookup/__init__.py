"""Commands under the heading Look up."""
