"""What clients need to use Handrail: their files as data, and how to edit texts without touching the rest."""
