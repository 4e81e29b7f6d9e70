"""What it costs to append to the ledger, to follow it page by page, and to hear of a write in another process."""
