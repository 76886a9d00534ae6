//! The eight worked timelines of HEv3 §4.2.2, in their order.

use crate::vocabulary::{TestedResolution, dual_stack, ipv4_only};

const ALL_THREE: [&str; 3] = ["example.com HTTPS", "example.com AAAA", "example.com A"];
const HTTPS: [&str; 1] = ["example.com HTTPS 1 . alpn=h3,h2"];
const AAAA: [&str; 2] = ["example.com AAAA 2001:db8::1", "example.com AAAA 2001:db8::2"];
const A: [&str; 2] = ["example.com A 192.0.2.1", "example.com A 192.0.2.2"];
const ALTERNATING: [&str; 4] = ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2"];

//= hev3 §4.1
//# HTTPS, AAAA, A at once, in this order
/// ```text
/// 30 ms  HTTPS (no hints), AAAA     start with IPv6
///  2 ms  A                          update with IPv6 + IPv4
/// ```
#[test]
fn aaaa_slightly_before_a() {
    TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .waits()
        .wait_milliseconds(30)
        .answers(&HTTPS)
        .waits()
        .answers(&AAAA)
        .starts_with(&["2001:db8::1", "2001:db8::2"])
        .wait_milliseconds(2)
        .answers(&A)
        .starts_with(&ALTERNATING);
}

//= hev3 §4.2
//# the Resolution Delay, 50 ms, begins with the first usable address
/// ```text
/// 30 ms  HTTPS (no hints), A        50 ms timer
/// 10 ms  AAAA                       start with IPv6 + IPv4
/// ```
#[test]
fn a_before_aaaa() {
    TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .wait_milliseconds(30)
        .answers(&HTTPS)
        .answers(&A)
        .waits_for(50)
        .wait_milliseconds(10)
        .waits_for(40)
        .answers(&AAAA)
        .starts_with(&ALTERNATING);
}

//= hev3 §4.2
//# at the end of the Resolution Delay (`Policy::resolution_delay`) attempts start without AAAA
/// ```text
///  30 ms  HTTPS (no hints), A       50 ms timer
///  50 ms                            start with IPv4
/// 100 ms  AAAA                      update with IPv6 + IPv4
/// ```
#[test]
fn a_long_before_aaaa() {
    TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .wait_milliseconds(30)
        .answers(&HTTPS)
        .answers(&A)
        .waits_for(50)
        .wait_milliseconds(50)
        .starts_with(&["192.0.2.1", "192.0.2.2"])
        .wait_milliseconds(100)
        .answers(&AAAA)
        .starts_with(&ALTERNATING);
}

/// ```text
/// 30 ms  AAAA, A                    50 ms timer
/// 10 ms  HTTPS (no hints)           start with IPv6 + IPv4
/// ```
#[test]
fn https_slightly_late() {
    TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .wait_milliseconds(30)
        .answers(&AAAA)
        .answers(&A)
        .waits_for(50)
        .wait_milliseconds(10)
        .answers(&HTTPS)
        .starts_with(&ALTERNATING);
}

//= hev3 §4.2
//# service information is waited for until the Resolution Delay ends
/// ```text
/// 30 ms  AAAA, A                    50 ms timer
/// 50 ms                             start with IPv6 + IPv4
/// ```
#[test]
fn https_very_late_or_never() {
    TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .wait_milliseconds(30)
        .answers(&AAAA)
        .answers(&A)
        .waits_for(50)
        .wait_milliseconds(50)
        .starts_with(&ALTERNATING);
}

//= hev3 §4.2.1
//# an address hint is tried while AAAA is late
/// ```text
/// 30 ms  HTTPS (with hints)         start with IPv6 + IPv4
/// ```
#[test]
fn hints_while_aaaa_is_late() {
    TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .wait_milliseconds(30)
        .answers(&["example.com HTTPS 1 . alpn=h3 ipv6hint=2001:db8::1 ipv4hint=192.0.2.1"])
        .starts_with(&["2001:db8::1", "192.0.2.1"]);
}

//= rfc9460 §5.1, §5.2
//# aliases and targets are queried
/// ```text
/// 30 ms  HTTPS ("."), HTTPS ("alt"), AAAA, A
///                                   start with IPv6 + IPv4, ask AAAA and A of "alt"
/// 30 ms  AAAA, A of "alt"           update with IPv6 + IPv4
/// ```
#[test]
fn two_service_names() {
    TestedResolution::for_network(dual_stack())
        .asks(&ALL_THREE)
        .wait_milliseconds(30)
        .answers(&[
            "example.com HTTPS 1 . alpn=h3,h2",
            "example.com HTTPS 2 alt.example.com alpn=h3,h2",
        ])
        .answers(&AAAA)
        .answers(&A)
        .starts_with(&ALTERNATING)
        .asks(&["alt.example.com AAAA", "alt.example.com A"])
        .wait_milliseconds(30)
        .answers(&["alt.example.com AAAA 2001:db8:a::1"])
        .answers(&["alt.example.com A 192.0.2.99"])
        .starts_with(&[
            "2001:db8::1",
            "192.0.2.1",
            "2001:db8::2",
            "192.0.2.2",
            "2001:db8:a::1",
            "192.0.2.99",
        ]);
}

/// ```text
/// 30 ms  A                          50 ms timer
/// 10 ms  HTTPS (no hints)           start with IPv4
/// ```
#[test]
fn ipv4_only_network() {
    TestedResolution::for_network(ipv4_only())
        .asks(&["example.com HTTPS", "example.com A"])
        .wait_milliseconds(30)
        .answers(&A)
        .waits_for(50)
        .wait_milliseconds(10)
        .answers(&HTTPS)
        .starts_with(&["192.0.2.1", "192.0.2.2"]);
}
