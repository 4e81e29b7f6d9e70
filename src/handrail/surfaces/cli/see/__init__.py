"""Commands under the heading See: what is open, done, decided, changed."""
