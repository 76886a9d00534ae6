"""Malformed packets and wrong checksums are detected and assigned to their sender."""

import ipaddress
import pathlib
import shutil
import struct
import tempfile
import unittest

from ..sctp import captures

OURS, THEIRS = "192.0.2.1", "192.0.2.2"
# HEARTBEAT with heartbeat information of 8 bytes, and without any.
GOOD = bytes.fromhex("04000010" "0001000c" "0102030405060708")
EMPTY = bytes.fromhex("04000004")


def crc32c(data: bytes) -> int:
    """RFC 9260 appendix A."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def packet(source: str, chunk: bytes, wrong: int = 0) -> bytes:
    """Returns an SCTP packet over IPv4, without a link layer."""
    header = struct.pack("!HHI", 5000, 5000, 1)
    checksum = struct.pack("<I", crc32c(header + bytes(4) + chunk) ^ wrong)
    sctp = header + checksum + chunk
    addresses = b"".join(ipaddress.ip_address(it).packed for it in (source, THEIRS))
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(sctp), 0, 0, 64, 132, 0) + addresses + sctp


def pcap(packets: list[bytes]) -> bytes:
    """Returns a capture of raw IP packets."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    return head + b"".join(struct.pack("<IIII", 0, 0, len(it), len(it)) + it for it in packets)


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
class Captures(unittest.TestCase):
    def read(self, *packets: bytes) -> captures.Packets:
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "some.pcap"
            file.write_bytes(pcap(list(packets)))
            return captures.read(file, {OURS})

    def test_good_packets_have_no_problems(self):
        result = self.read(packet(OURS, GOOD), packet(THEIRS, GOOD))
        self.assertEqual((result.count, result.ours, result.theirs), (2, [], []))

    def test_problems_are_assigned_to_the_sender(self):
        result = self.read(packet(OURS, GOOD), packet(OURS, GOOD, wrong=1), packet(THEIRS, EMPTY))
        self.assertEqual((result.count, len(result.ours), len(result.theirs)), (3, 1, 1))
        self.assertIn("checksum 0", result.ours[0])
        self.assertIn("Malformed", result.theirs[0])

    def test_a_malformed_packet_of_ours_counts_as_ours(self):
        self.assertEqual(len(self.read(packet(OURS, EMPTY)).ours), 1)
