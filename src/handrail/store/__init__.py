"""The store: one ledger and the tables it folds into, on SQLite or PostgreSQL, with a memory store as the reference.

Callers run a function over a `Unit`: it reads, decides, and records events with the rows they change. The store commits
all of it in one transaction or none, and runs the function again if somebody else was first. Two small dialect modules
hold everything the engines disagree about.
"""
