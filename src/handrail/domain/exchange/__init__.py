"""Importing and exporting plans: other tools' files are read into one form, and written from it."""
