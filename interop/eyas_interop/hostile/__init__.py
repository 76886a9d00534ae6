"""Attacks on eyas: what they cost it, and what honest clients get meanwhile."""
