"""`eyas netem` compared with Linux's `sch_netem`, measured by the same probe in the same run."""
