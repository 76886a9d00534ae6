//! Transports, families and delays without memory.

use crate::vocabulary::{Ladder, dual_stack, timetable};

/// ```text
/// example.com AAAA 2001:db8::1
/// example.com A    192.0.2.1
/// ```
#[test]
fn two_lanes_with_alternating_families() {
    let ladder = Ladder::on(dual_stack())
        .answers(&["example.com HTTPS -"])
        .answers(&["example.com AAAA 2001:db8::1"])
        .answers(&["example.com A 192.0.2.1"]);
    assert_eq!(
        timetable(&ladder.plan()),
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "250 quic 192.0.2.1", "300 tcp 192.0.2.1"]
    );
}
