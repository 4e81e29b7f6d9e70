"""The peers, each run by the Python of its own environment. They share with the bench only `bench.store.slices`."""
