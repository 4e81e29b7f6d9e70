"""The journal: what a task changed, why, and whether it stayed in scope. Pure; git and files are `outside`."""
