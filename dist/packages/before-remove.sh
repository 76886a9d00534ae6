#!/bin/sh
# Stops the units before the command is gone; an upgrade leaves them running: Debian's scripts are called with
# `upgrade` then, and those of RPM with 1.
set -e
if [ "$1" != upgrade ] && [ "$1" != 1 ] && [ -d /run/systemd/system ]; then
    for unit in serve proxy tunnel sctp; do
        systemctl --no-reload disable --now "eyas-$unit.service" "eyas-$unit.socket" 2>/dev/null || true
    done
fi
