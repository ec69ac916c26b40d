"""Secrets of this laptop that a run must find again after a crash: files 0600, and nothing else.

The room makes, reads and destroys keys. It knows no journal and no node, writes no secret anywhere else, and
prints none: not in a message, not in a repr.
"""
