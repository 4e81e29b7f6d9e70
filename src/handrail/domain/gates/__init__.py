"""Gates: decisions that wait for a person. Records and states; no I/O."""
