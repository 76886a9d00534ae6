"""Runs eyas against real peers: Caddy, Hypercorn, CoreDNS, Chromium, libcurl; Linux, usrsctp and pion."""
