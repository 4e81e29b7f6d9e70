"""A repository whose config file names programs, addresses and weaker rules."""
