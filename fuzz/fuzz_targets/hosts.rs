//! Arbitrary text as a host: parsing never panics, and normalisation is idempotent.
#![no_main]

use eyas_race::target::{Target, TargetHost};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<4> =
    Reach::new(["a name", "an IPv4 address", "an IPv6 address", "an invalid host"]);

fuzz_target!(|text: &str| {
    REACH.begin();
    let Ok(host) = TargetHost::parse(text) else { return REACH.hit("an invalid host") };
    REACH.hit(match &host {
        TargetHost::Name(_) => "a name",
        TargetHost::Literal(address, _) if address.is_ipv4() => "an IPv4 address",
        TargetHost::Literal(..) => "an IPv6 address",
    });
    if let Some(name) = host.name() {
        assert!(name.len() <= 253);
        assert_eq!(TargetHost::parse(name).as_ref(), Ok(&host));
    }
    assert!(!Target::https(host, 443).to_string().is_empty());
});
