"""The other side of the open market: an agent that offers one machine, signs quotes, lets renters in and out."""
