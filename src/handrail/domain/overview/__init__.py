"""What people look at: read models of the store, one a screen. Pure reading; nothing is drawn and nothing changed."""
