"""The crash-safe ledger: `journal.sqlite` in the state directory, one file for all runs, and the run locks.

The room writes down and reads back; it decides nothing, repeats nothing, and no secret enters it. It is the one
room that uses sqlite3, so the sender's signed transactions (outbox.py) are kept here as well.
"""
