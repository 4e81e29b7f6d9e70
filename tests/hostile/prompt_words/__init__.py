"""Words that clients expand in prompts."""
