"""Measures a path by ICMP echo, which the kernel at the other end answers. Prints one JSON object.

Usage: probe.py delay|loss|rate ADDRESS COUNT PER_SECOND BYTES

The times are those at which the kernel got the answers, so that a late probe measures no delay.
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
# After the last echo, answers are waited for so long, in seconds.
_PATIENCE = 2.0


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def echo(number: int, size: int, tag: int) -> bytes:
    """An echo request of `size` bytes with its IP header."""
    body = struct.pack("!I", number) + bytes(size - 20 - 8 - 4)
    head = struct.pack("!BBHHH", _ECHO, 0, 0, tag, number & 0xFFFF)
    return struct.pack("!BBHHH", _ECHO, 0, checksum(head + body), tag, number & 0xFFFF) + body


def run(address: str, count: int, per_second: float, size: int) -> dict[int, tuple[float, float]]:
    """When each echo was sent, and when its answer came, if it did."""
    tag = os.getpid() & 0xFFFF
    link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    link.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
    link.connect((address, 0))
    link.setblocking(False)
    echoes = [echo(number, size, tag) for number in range(count)]
    sent, came = {}, {}

    def read() -> None:
        while True:
            try:
                packet, ancillary, _, _ = link.recvmsg(2048, 64)
            except BlockingIOError:
                return
            begin = (packet[0] & 15) * 4
            kind, _, _, of, _, number = struct.unpack("!BBHHHI", packet[begin : begin + 12])
            if kind == _REPLY and of == tag and ancillary:
                seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
                came.setdefault(number, seconds + nanoseconds * 1e-9)

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
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and len(came) < len(sent):
        select.select([link], [], [], 0.1)
        read()
    return {number: (at, came.get(number, 0.0)) for number, at in sent.items()}


def wake_up_late() -> float:
    """How late this machine wakes up a sleeper, in ms, at the 99th percentile."""
    late = []
    for _ in range(1000):
        due = time.monotonic() + 0.001
        time.sleep(0.001)
        late.append(time.monotonic() - due)
    return sorted(late)[990] * 1e3


def main() -> None:
    what, address, count, per_second, size = sys.argv[1:6]
    result = run(address, int(count), float(per_second), int(size))
    answered = [(sent, came) for sent, came in result.values() if came]
    report: dict[str, float] = {"sent": len(result), "answered": len(answered)}
    if what == "delay":
        times = sorted((came - sent) * 1e3 for sent, came in answered)
        share = lambda part: times[min(len(times) - 1, int(part * len(times)))]
        report |= {"least": times[0], "p50": share(0.5), "p99": share(0.99), "most": times[-1]}
        report["machine_p99"] = wake_up_late()
    if what == "rate":
        # The first answers pass an empty queue; from then on the link is never idle.
        times = sorted(came for _, came in answered)
        times = times[len(times) // 10 :]
        report["bits_per_second"] = (len(times) - 1) * int(size) * 8 / (times[-1] - times[0])
    print(json.dumps(report))


if __name__ == "__main__":
    main()
