"""The pipeline's pure parts."""
