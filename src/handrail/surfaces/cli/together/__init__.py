"""Commands under the heading Work together: agents, messages, boards, worktrees."""
