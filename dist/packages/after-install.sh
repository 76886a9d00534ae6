#!/bin/sh
# The user of the units, and the units themselves; no unit is enabled.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers eyas.conf
elif ! getent passwd eyas >/dev/null 2>&1 && command -v useradd >/dev/null 2>&1; then
    useradd --system --no-create-home --home-dir / --shell /usr/sbin/nologin eyas
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
