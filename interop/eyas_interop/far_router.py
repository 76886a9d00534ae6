"""A router some milliseconds away that cannot reach the hosts behind it."""

import fcntl
import os
import socket
import struct
import subprocess
import threading
import time

# Hosts behind it (RFC 5737, RFC 3849), and its own addresses.
BEHIND4, BEHIND6 = "203.0.113.9", "2001:db8:113::9"
SELF4, SELF6 = "203.0.113.1", "2001:db8:113::1"
DISTANCE = 0.02

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
TCP, ICMPV6 = 6, 58
# How much of a packet is quoted: its headers, and what distinguishes one SYN from another.
QUOTED4, QUOTED6 = 48, 100


class FarRouter:
    """A router behind a device of this process's network namespace, while the context is active."""

    def __enter__(self) -> "FarRouter":
        self._device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self._device, TUNSETIFF, struct.pack("16sH22x", b"far", IFF_TUN | IFF_NO_PI))
        for command in (
            "link set far up",
            "address add 203.0.113.2/24 dev far",
            "-6 address add 2001:db8:113::2/64 dev far nodad",
        ):
            subprocess.run(["ip", *command.split()], check=True, capture_output=True)
        threading.Thread(target=self._answer, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing the descriptor removes the device, which ends the thread.
        subprocess.run(["ip", "link", "delete", "far"], check=False, capture_output=True)
        os.close(self._device)

    def _answer(self) -> None:
        try:
            while True:
                packet = os.read(self._device, 2000)
                answer = refusal(packet)
                if answer:
                    time.sleep(DISTANCE)
                    os.write(self._device, answer)
        except OSError:
            return


def refusal(packet: bytes) -> bytes | None:
    """Returns an ICMP error saying that the host of a TCP packet is unreachable; none for other packets."""
    if packet[0] >> 4 == 4 and packet[9] == TCP:
        message = with_checksum(struct.pack(">BBHI", 3, 1, 0, 0) + packet[:QUOTED4], b"", 2)
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(message), 1, 0, 64, 1, 0)
        return with_checksum(head + socket.inet_aton(SELF4) + packet[12:16], b"", 10) + message
    if packet[0] >> 4 == 6 and packet[6] == TCP:
        ends = socket.inet_pton(socket.AF_INET6, SELF6) + packet[8:24]
        message = struct.pack(">BBHI", 1, 3, 0, 0) + packet[:QUOTED6]
        message = with_checksum(message, ends + struct.pack(">II", len(message), ICMPV6), 2)
        return struct.pack(">IHBB", 0x60000000, len(message), ICMPV6, 64) + ends + message
    return None


def with_checksum(packet: bytes, pseudo_header: bytes, at: int) -> bytes:
    """Returns the packet with its checksum (RFC 1071), which covers the pseudo-header too."""
    octets = pseudo_header + packet + b"\0" * ((len(pseudo_header) + len(packet)) % 2)
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:at] + struct.pack(">H", ~total & 0xFFFF) + packet[at + 2 :]
