"""What the state machine draws from: mostly what fits, with the edges and some nonsense among it."""
from __future__ import annotations

from hypothesis import strategies as st

from .world import OTHER_PROVIDER, OTHER_RENTER, PEOPLE, PROVIDER, RENTER

people = st.sampled_from(PEOPLE)
renters = st.sampled_from([RENTER, OTHER_RENTER])
providers = st.sampled_from([PROVIDER, OTHER_PROVIDER])
prices = st.one_of(st.sampled_from([400_000, 123_457, 7, 1, 0, 2**96 - 1]), st.integers(1, 10**7))
spans = st.one_of(st.sampled_from([0, 1, 59, 3599, 3600, 3601, 2**32 - 1]), st.integers(1, 7200))
digests = st.sampled_from([bytes([n]) * 32 for n in range(4)])
jitter = st.sampled_from([-1, 0, 1])
which = st.integers(0, 23)                                # one of the rentals, see `some`
roomy = st.sampled_from([0, 0, 0, 0, 0, 1, -1])          # what is allowed beyond the price: mostly just enough
lists = st.sampled_from([(), (PROVIDER.address,), (OTHER_PROVIDER.address, PROVIDER.address)])
someone = st.sampled_from([None] * 16 + list(PEOPLE))          # None: whoever may
parties = st.sampled_from(["renter", "provider", "session"])
