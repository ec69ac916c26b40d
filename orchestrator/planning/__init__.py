"""From wishes and offers to a choice, a sum to confirm, and the next decision while a job runs. Pure.

Facts go in, a value comes out. It must not read a clock, ask a market or a node, or do what it decides.
"""
