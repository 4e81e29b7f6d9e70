"""What a team holds dear, and whether a plan breaks with it. Records and rules; no store."""
