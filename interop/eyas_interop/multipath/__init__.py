"""Two hosts joined by lines of different rates, and one association over all of them."""
