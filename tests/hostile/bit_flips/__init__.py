"""A bit of the store flips, on a disk or in memory: nothing that is live changes without being seen."""
