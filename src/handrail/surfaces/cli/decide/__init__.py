"""Commands under the heading Decide: a person's answers."""
