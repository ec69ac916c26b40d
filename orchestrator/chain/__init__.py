"""The escrow on its chain: quotes and signatures, deposits and refunds, and the sender whose bytes are kept first.

Amounts are integers, every transaction is on disk before it is sent and sent again as the same bytes, and the contract's
code is compared with ours before money moves. It must know no node and no run. web3 and eth-account stay inside.
"""
