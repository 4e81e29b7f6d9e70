"""A backup that somebody hands over: what is not exactly a sound store is refused before anything is replaced."""
