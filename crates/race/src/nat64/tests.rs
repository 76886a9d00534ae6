//! The table of RFC 6052 §2.4, and what must not be translated.

use super::*;

/// `192.0.2.33` behind `2001:db8:122:344::/64` and under the other prefix lengths.
const RFC_6052_TABLE: [(&str, u8, &str); 6] = [
    ("2001:db8::", 32, "2001:db8:c000:221::"),
    ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
    ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
    ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
    ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
    ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
];

#[test]
fn every_prefix_length_matches_the_table() {
    let address = Ipv4Addr::new(192, 0, 2, 33);
    for (prefix, len, embedded) in RFC_6052_TABLE {
        let pref64 = (prefix.parse().unwrap(), len);
        let embedded: Ipv6Addr = embedded.parse().unwrap();
        assert_eq!(synthesise(pref64, address), Some(embedded), "/{len}");
        assert_eq!(extract(pref64, embedded), Some(address), "/{len}");
    }
}

#[test]
fn the_well_known_prefix_carries_no_private_addresses() {
    let public = Ipv4Addr::new(192, 0, 2, 1);
    let embedded = "64:ff9b::192.0.2.1".parse().unwrap();
    assert_eq!(synthesise(WELL_KNOWN_PREFIX, public), Some(embedded));
    assert_eq!(synthesise(WELL_KNOWN_PREFIX, Ipv4Addr::new(10, 0, 0, 1)), None);
    let own = ("2001:db8:64::".parse().unwrap(), 96);
    assert!(synthesise(own, Ipv4Addr::new(10, 0, 0, 1)).is_some());
}

//= hev3 §8.3
//# never synthesised: 0/8, 127/8, 169.254/16, 255.255.255.255, and private addresses with the
//# Well-Known Prefix
#[test]
fn addresses_of_host_and_link_are_never_translated() {
    for address in ["0.1.2.3", "127.0.0.1", "169.254.1.1", "255.255.255.255"] {
        assert_eq!(synthesise(WELL_KNOWN_PREFIX, address.parse().unwrap()), None, "{address}");
    }
}

#[test]
fn other_addresses_and_lengths_hold_no_ipv4() {
    assert_eq!(extract(WELL_KNOWN_PREFIX, "2001:db8::1".parse().unwrap()), None);
    let invalid_length = ("2001:db8::".parse().unwrap(), 33);
    assert_eq!(synthesise(invalid_length, Ipv4Addr::new(192, 0, 2, 1)), None);
    assert_eq!(extract(invalid_length, "2001:db8::1".parse().unwrap()), None);
    let short = ("2001:db8::".parse().unwrap(), 32);
    assert_eq!(extract(short, "2001:db8:c000:221:ff00::".parse().unwrap()), None, "u octet");
}

#[test]
fn bits_of_the_prefix_beyond_its_length_are_ignored() {
    let with_host_bits = ("2001:db8:122:344:ffff:ffff:ffff:ffff".parse().unwrap(), 64);
    let embedded = "2001:db8:122:344:c0:2:2100::".parse().unwrap();
    assert_eq!(synthesise(with_host_bits, Ipv4Addr::new(192, 0, 2, 33)), Some(embedded));
}
