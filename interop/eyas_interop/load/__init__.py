"""`eyas load` compared with another load generator, on features that both have, in one run."""
