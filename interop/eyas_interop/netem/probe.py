"""Measures a path by ICMP echo, answered by the kernel at the other end. Prints one JSON object.

Usage: probe.py delay|loss|rate ADDRESS COUNT PER_SECOND BYTES

It uses the kernel's receive timestamps, so that its own scheduling delays are not measured.
"""

import json
import os
import select
import socket
import struct
import sys
import time

# SOL_SOCKET, SO_TIMESTAMPNS of asm-generic/socket.h: the clock is CLOCK_REALTIME.
_TIMESTAMP = 35
_ECHO, _REPLY = 8, 0
# How long it waits for answers after the last echo, in seconds.
_TIMEOUT = 2.0


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def echo(number: int, size: int, tag: int) -> bytes:
    """Returns an echo request of `size` bytes including its IP header."""
    body = struct.pack("!I", number) + bytes(size - 20 - 8 - 4)
    head = struct.pack("!BBHHH", _ECHO, 0, 0, tag, number & 0xFFFF)
    return struct.pack("!BBHHH", _ECHO, 0, checksum(head + body), tag, number & 0xFFFF) + body


def run(address: str, count: int, per_second: float, size: int) -> dict[int, tuple[float, float]]:
    """Returns when each echo was sent and answered; 0 without an answer."""
    tag = os.getpid() & 0xFFFF
    link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    link.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
    link.connect((address, 0))
    link.setblocking(False)
    echoes = [echo(number, size, tag) for number in range(count)]
    sent, received = {}, {}

    def read() -> None:
        while True:
            try:
                packet, ancillary, _, _ = link.recvmsg(2048, 64)
            except BlockingIOError:
                return
            begin = (packet[0] & 15) * 4
            kind, _, _, identifier, _, number = struct.unpack("!BBHHHI", packet[begin : begin + 12])
            if kind == _REPLY and identifier == tag and ancillary:
                seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
                received.setdefault(number, seconds + nanoseconds * 1e-9)

    start = time.monotonic()
    for number in range(count):
        due = start + number / per_second
        while (left := due - time.monotonic()) > 0:
            select.select([link], [], [], left)
            read()
        sent[number] = time.clock_gettime(time.CLOCK_REALTIME)
        try:
            link.send(echoes[number])
        except BlockingIOError:
            del sent[number]
        read()
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end and len(received) < len(sent):
        select.select([link], [], [], 0.1)
        read()
    return {number: (at, received.get(number, 0.0)) for number, at in sent.items()}


def wakeup_latency() -> float:
    """Returns how late this machine wakes a sleeping process, in ms, at the 99th percentile."""
    late = []
    for _ in range(1000):
        due = time.monotonic() + 0.001
        time.sleep(0.001)
        late.append(time.monotonic() - due)
    return sorted(late)[990] * 1e3


def main() -> None:
    measurement, address, count, per_second, size = sys.argv[1:6]
    result = run(address, int(count), float(per_second), int(size))
    answered = [(sent, received) for sent, received in result.values() if received]
    report: dict[str, float] = {"sent": len(result), "answered": len(answered)}
    if measurement == "delay":
        times = sorted((received - sent) * 1e3 for sent, received in answered)
        quantile = lambda share: times[min(len(times) - 1, int(share * len(times)))]
        report |= {"least": times[0], "p50": quantile(0.5), "p99": quantile(0.99), "most": times[-1]}
        report["machine_p99"] = wakeup_latency()
    if measurement == "rate":
        # The first packets find an empty queue; afterwards the link is never idle.
        times = sorted(received for _, received in answered)
        times = times[len(times) // 10 :]
        report["bits_per_second"] = (len(times) - 1) * int(size) * 8 / (times[-1] - times[0])
    print(json.dumps(report))


if __name__ == "__main__":
    main()
