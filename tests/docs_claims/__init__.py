"""What the pages for people claim, held against the tree."""
