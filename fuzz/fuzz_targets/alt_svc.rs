//! Arbitrary octets as an `Alt-Svc` field: the parser never panics and keeps its bounds, and the
//! cache accepts its output.
#![no_main]

use std::time::Duration;

use eyas_http::alt_svc::{AltSvc, Cache, MAX_ALTERNATIVES, Origin, is_port_allowed, parse};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<8> = Reach::new([
    "alternatives are parsed",
    "several alternatives are parsed",
    "another host is parsed",
    "a persistent alternative is parsed",
    "a percent-encoded protocol is parsed",
    "clear is parsed",
    "a field is malformed",
    "a port of another service is ignored",
]);

fuzz_target!(|field: &[u8]| {
    REACH.begin();
    match parse(field) {
        Ok(AltSvc::Alternatives(list)) => {
            assert!(list.len() <= MAX_ALTERNATIVES);
            assert!(list.iter().all(|alternative| alternative.port != 0));
            for alternative in &list {
                REACH.hit("alternatives are parsed");
                if alternative.host.is_some() {
                    REACH.hit("another host is parsed");
                }
                if alternative.persist {
                    REACH.hit("a persistent alternative is parsed");
                }
                if alternative.protocol.contains(&b'=') {
                    REACH.hit("a percent-encoded protocol is parsed");
                }
                if !is_port_allowed(443, alternative.port) {
                    REACH.hit("a port of another service is ignored");
                }
            }
            if list.len() > 1 {
                REACH.hit("several alternatives are parsed");
            }
        }
        Ok(AltSvc::Clear) => REACH.hit("clear is parsed"),
        Err(malformed) => {
            assert!(malformed.at <= field.len());
            REACH.hit("a field is malformed");
        }
    }
    let origin = Origin { host: "a.example".to_owned(), port: 443 };
    let mut cache = Cache::new();
    cache.learn(&origin, field, Duration::ZERO, Duration::ZERO);
    if let Some(service) = cache.best(&origin, Duration::ZERO, |_| true) {
        assert!(is_port_allowed(origin.port, service.port));
        assert!(!service.alt_used(&origin.host).is_empty());
        cache.failed(&origin, &service, Duration::ZERO);
    }
});
