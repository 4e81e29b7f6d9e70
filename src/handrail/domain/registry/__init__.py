"""Everything there is, under addresses: graphs, runs, children, boards, and what happened to them."""
