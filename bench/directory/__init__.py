"""How long a snapshot of a directory without git takes, against walking it and asking for every file's facts."""
