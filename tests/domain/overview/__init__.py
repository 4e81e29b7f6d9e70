"""Read models of the store, one a screen."""
