//! Captures are read by tshark, packet by packet.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::capture::PacketCapture;
use eyas_netem::packet::{Packet, protocol};

/// The fields that tshark prints of each packet.
const FIELDS: [&str; 9] = [
    "frame.interface_name",
    "frame.time_epoch",
    "frame.len",
    "ip.src",
    "ipv6.dst",
    "udp.dstport",
    "sctp.dstport",
    "ip.dsfield.ecn",
    "frame.comment",
];

fn packet(source: &str, destination: &str, protocol: u8, payload: &[u8]) -> Packet {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    Packet {
        source: address(source),
        destination: address(destination),
        protocol,
        ecn: 3,
        dont_fragment: false,
        payload: Bytes::copy_from_slice(payload),
    }
}

#[test]
fn tshark_reads_a_capture() {
    if Command::new("tshark").arg("--version").output().is_err() {
        writeln!(std::io::stderr(), "SKIPPED: tshark is not installed").unwrap();
        return;
    }
    let mut capture = PacketCapture::new(1 << 16);
    let (one, other) = (capture.interface("one →"), capture.interface("one ←"));
    // Ports 1000 and 2000, then what each protocol has in its header.
    let udp = [3, 232, 7, 208, 0, 9, 0, 0, 55];
    let sctp = [3, 232, 7, 208, 0, 0, 0, 1, 0, 0, 0, 0, 14, 0, 0, 4];
    let time = Duration::from_nanos(1_000_000_007);
    let first = packet("192.0.2.1", "192.0.2.2", protocol::UDP, &udp);
    capture.packet(time, one, &first, None);
    let second = packet("2001:db8::1", "2001:db8::2", protocol::UDP, &udp);
    capture.packet(time * 2, other, &second, Some("queue full"));
    let third = packet("192.0.2.3", "192.0.2.2", protocol::SCTP, &sctp);
    capture.packet(time * 3, one, &third, None);

    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "separator=;", "-r", "-"]);
    // tshark verifies the header's checksum only on request.
    command.args(["-o", "ip.check_checksum:TRUE", "-e", "ip.checksum.status"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&capture.drain()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let problems = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        lines,
        [
            "1;one →;1.000000007;29;192.0.2.1;;2000;;3;",
            ";one ←;2.000000014;49;;2001:db8::2;2000;;;queue full",
            "1;one →;3.000000021;36;192.0.2.3;;;2000;3;",
        ],
        "{problems}"
    );
}
