"""Everything that has an address: graphs, runs, children, boards, and what happened to them."""
