"""What foreseeing conflicts costs, against one `git merge-tree`, and making a worktree, against `git worktree add`."""
