"""Commands under the heading Plans and guides."""
