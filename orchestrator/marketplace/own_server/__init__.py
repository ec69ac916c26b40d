"""The user's own machine as a market of one offer, without money."""
