"""Outside: the world behind the domain's ports. Files and engines are used here and nowhere else."""
