"""What it costs to compare graphs, to patch one, and to commit a change of one, whether it has 100 nodes or 10,000."""
