"""What a model reads before its first word: `tools/list` and instructions, of ours and of public servers."""
