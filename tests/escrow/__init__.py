"""The escrow contract against Circle's real token, on an EVM in this process."""
