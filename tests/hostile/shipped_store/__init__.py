"""A repository that ships its author's store, with the author's tokens in it."""
