"""The attack: git is configured, marked or tricked so that it does not see what a task does."""
