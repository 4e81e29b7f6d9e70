"""Outside: the world behind the domain's ports. Files and engines are met here and nowhere else."""
