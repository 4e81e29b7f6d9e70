"""Finding words in the records: what counts as a text, a word, a query. No index and no store."""
