"""Two hosts connected by lines of different rates, and one association over all of them."""
