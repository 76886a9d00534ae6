"""Attacks on eyas: what they cost it, and whether honest clients are served meanwhile."""
