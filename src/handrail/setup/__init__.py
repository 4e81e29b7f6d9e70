"""The check-up of a setup: what `handrail doctor` examines. It changes nothing."""
