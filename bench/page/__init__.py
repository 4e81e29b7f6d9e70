"""What the page costs, against peers in the same run."""
