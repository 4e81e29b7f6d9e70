"""What a snapshot of a git working tree costs, against `git status` in the same repository and the same round."""
