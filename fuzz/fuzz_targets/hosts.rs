//! Arbitrary text as a host: never a panic, and what was normalised stays as it is when it is
//! normalised again.
#![no_main]

use eyas_race::target::{Host, Target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(host) = Host::parse(text) else { return };
    if let Some(name) = host.name() {
        assert!(name.len() <= 253);
        assert_eq!(Host::parse(name).as_ref(), Ok(&host));
    }
    assert!(!Target::https(host, 443).to_string().is_empty());
});
