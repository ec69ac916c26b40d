"""The report of a lease, the closing record of a run, and the numbered checks that anyone can repeat over both.

Everything said here is derived from the journal's rows and from evidence kept by digest. The room observes
nothing itself, asks no chain and no node, and never says more than a row does.
"""
