"""`eyas load` beside another load generator, on what both can do, in one run."""
