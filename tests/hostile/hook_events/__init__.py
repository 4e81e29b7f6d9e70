"""Events of a client, and words in a store, that try to make a hook do or say more than it should."""
