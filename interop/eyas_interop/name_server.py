"""A name server with one fault: `python -m eyas_interop.name_server FAULT ADDRESS PORT`.

It knows `doctor.eyas.test`, the HTTPS records of services there, and `ipv4only.arpa`, over UDP and TCP.

| FAULT | what it does |
| --- | --- |
| none | answers everything |
| no-https | leaves questions for HTTPS records unanswered, as some home routers do |
| no-tcp | does not listen on TCP |
| lies | answers every question for IPv4 addresses with its own, as a captive portal does |
| dns64 | makes up IPv6 addresses below 64:ff9b::/96 (RFC 6147) |
"""

import ipaddress
import socket
import struct
import sys
import threading

from . import dns
from .network import EYAS, ipv4, ipv6

NAME = "doctor.eyas.test"
COMMON = "ipv4only.arpa"
A, AAAA, HTTPS = 1, 28, 65
NO_SUCH_NAME = 3
# ServiceMode with priority 1, the owner itself as target, and the protocols h3 and h2 (RFC 9460 §2.2).
SERVICE = b"\0\1\0\0\1\0\6\2h3\2h2"


def records(fault: str, address: str, name: str, kind: int) -> list[bytes] | None:
    """Returns the data of the records; `None` if the name does not exist."""
    if fault == "lies" and kind == A:
        return [ipaddress.ip_address(address).packed]
    if name == COMMON:
        if kind == A:
            return [bytes([192, 0, 0, 170]), bytes([192, 0, 0, 171])]
        if kind == AAAA and fault == "dns64":
            return [ipaddress.ip_address("64:ff9b::192.0.0.170").packed]
        return []
    if name == NAME:
        own = {A: ipv4(EYAS), AAAA: ipv6(EYAS)}.get(kind)
        return [ipaddress.ip_address(own).packed] if own else [SERVICE] if kind == HTTPS else []
    if name.endswith(f"._https.{NAME}"):
        return [SERVICE] if kind == HTTPS else []
    return None


def answer(fault: str, address: str, query: bytes) -> bytes | None:
    """Returns the response to a query in wire format (RFC 1035 §4); `None` if there is none."""
    end, labels = 12, []
    while query[end]:
        labels.append(query[end + 1 : end + 1 + query[end]].decode("ascii", "replace"))
        end += 1 + query[end]
    kind = struct.unpack_from("!H", query, end + 1)[0]
    if fault == "no-https" and kind == HTTPS:
        return None
    found = records(fault, address, ".".join(labels).lower(), kind)
    code = NO_SUCH_NAME if found is None else 0
    head = query[:2] + struct.pack("!5H", 0x8180 | code, 1, len(found or []), 0, 0)
    body = b"".join(
        struct.pack("!HHHIH", 0xC00C, kind, 1, 60, len(data)) + data for data in found or []
    )
    return head + query[12 : end + 5] + body


def serve_tcp(fault: str, address: str, listener: socket.socket) -> None:
    """Answers one query on each connection."""
    while True:
        stream, _ = listener.accept()
        with stream:
            stream.settimeout(5)
            try:
                length = struct.unpack("!H", stream.recv(2, socket.MSG_WAITALL))[0]
                response = answer(fault, address, stream.recv(length, socket.MSG_WAITALL))
                if response:
                    stream.sendall(struct.pack("!H", len(response)) + response)
            except (OSError, struct.error):
                pass


def is_up(address: str, port: int) -> bool:
    """Returns whether a server there answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(0.5)
        try:
            udp.sendto(dns.query(COMMON, A), (address, port))
            return len(udp.recv(4096)) > 0
        except OSError:
            return False


def main(fault: str, address: str, port: str) -> None:
    """Serves until it is ended."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as udp, socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if fault != "no-tcp":
            listener.bind((address, int(port)))
            listener.listen()
            arguments = (fault, address, listener)
            threading.Thread(target=serve_tcp, args=arguments, daemon=True).start()
        udp.bind((address, int(port)))
        while True:
            query, client = udp.recvfrom(4096)
            response = answer(fault, address, query)
            if response:
                udp.sendto(response, client)


if __name__ == "__main__":
    main(*sys.argv[1:])
