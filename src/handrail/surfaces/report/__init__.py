"""A workflow's report as one file: HTML without any script, or Markdown. What it says is `domain/overview`'s."""
