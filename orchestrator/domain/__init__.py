"""Values and rules of the product in plain words: money, leases, evidence, progress, documents, text of strangers.

Standard library only; it opens no file, asks no network and no clock. Everything here means the same in every room. It
must import no other part of the house, and nothing here decides what happens next.
"""
