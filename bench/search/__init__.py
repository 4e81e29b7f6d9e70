"""What does a search cost, and how does that grow?

`python -m bench.search` fills stores with 10,000 and 100,000 checkpoints and searches them. The floor of a search is
reading all checkpoints and looking for the words in each, the floor of the index is reading the ledger it is made of;
both in the same run.
"""
