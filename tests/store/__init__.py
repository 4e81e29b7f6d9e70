"""The store: one contract for every engine, and what each has of its own."""
