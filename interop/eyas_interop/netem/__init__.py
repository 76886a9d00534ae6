"""`eyas netem` beside `sch_netem` of Linux, measured by the same probe in the same run."""
