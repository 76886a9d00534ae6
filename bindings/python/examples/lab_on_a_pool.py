"""A plan on a pool of threads."""

from concurrent.futures import ThreadPoolExecutor

import eyas.lab

with ThreadPoolExecutor(2) as pool:
    short = {"time.warm_up": "2 s", "time.duration": "1 s"}
    eyas.lab.run("cmt-delay", quick=True, set=short, executor=pool, out="on-a-pool")
