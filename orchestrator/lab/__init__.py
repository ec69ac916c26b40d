"""Chain, provider, node and model hub on this machine: what the demo shows and what the tests run against.

Play money, throwaway keys and a simulated GPU behind the real protocols, on loopback only. It must hold no fault hook
that a product path could reach, reuse no key or wallet of the person, and leave nothing running after `lab down`.
"""
