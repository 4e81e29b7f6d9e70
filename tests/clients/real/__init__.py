"""The real clients, as npm has them, at work with Handrail. `./run clients` installs and runs them; see install.py."""
