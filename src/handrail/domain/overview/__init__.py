"""What people look at: read models of the store, one per screen. Reads only; nothing is drawn and nothing changed."""
