"""Our own market protocol, version 1: providers' offers over HTTP, money in the escrow contract."""
