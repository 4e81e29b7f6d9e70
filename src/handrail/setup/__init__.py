"""The check-up of a set-up: what `handrail doctor` looks at. It changes nothing."""
