"""What clients need to use Handrail: their files as data, and how texts are changed without touching the rest."""
