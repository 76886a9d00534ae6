#!/bin/sh
# The user stays, as files may still belong to it.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
