"""Cargo: the code that runs on a rented node. Agent, keeper, trainer, wipe; shipped as one archive, pinned by digest.

The agent side is Python 3.8 and its standard library; the trainer has its own environment. It holds no secret but the
one it is handed in a frame, and must write no plaintext to a disk, take no path from the wire, and need no laptop to end.
"""
