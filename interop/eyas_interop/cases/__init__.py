"""The cases, in execution order. A case is a function with the name of the peer that it tests."""

from . import (
    application, browser, connect_udp, data_channels, downloads, fetching, gateway, gateway_versions, names, planning,
    proxied, sctp_behaviour, sctp_crosswise, sctp_functional, sctp_guest, sctp_hosts, sctp_lines, sctp_pod,
    sctp_programs, sctp_service, sctp_sockets, sctp_trapped, swallowed, tunnel, tunnel_interfaces, tunnel_lines,
    tunnel_programs, unreachable,
)

CASES = [
    *fetching.CASES,
    *names.CASES,
    *planning.CASES,
    *swallowed.CASES,
    *unreachable.CASES,
    *proxied.CASES,
    *connect_udp.CASES,
    *downloads.CASES,
    *browser.CASES,
    *application.CASES,
    *gateway.CASES,
    *gateway_versions.CASES,
    *tunnel.CASES,
    *tunnel_lines.CASES,
    *tunnel_programs.CASES,
    *tunnel_interfaces.CASES,
    *sctp_sockets.CASES,
    *sctp_service.CASES,
    *sctp_pod.CASES,
    *sctp_programs.CASES,
    *sctp_trapped.CASES,
    *sctp_functional.CASES,
    *sctp_hosts.CASES,
    *sctp_guest.CASES,
    *sctp_crosswise.CASES,
    *sctp_lines.CASES,
    *sctp_behaviour.CASES,
    *data_channels.CASES,
]
