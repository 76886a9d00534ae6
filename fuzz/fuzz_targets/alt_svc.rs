//! Arbitrary octets as an `Alt-Svc` field: the parser never panics and keeps its bounds, and the
//! cache takes whatever it gives.
#![no_main]

use std::time::Duration;

use eyas_http::alt_svc::{AltSvc, Cache, MAX_ALTERNATIVES, Origin, is_port_allowed, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|field: &[u8]| {
    match parse(field) {
        Ok(AltSvc::Alternatives(list)) => {
            assert!(list.len() <= MAX_ALTERNATIVES);
            assert!(list.iter().all(|alternative| alternative.port != 0));
        }
        Ok(AltSvc::Clear) => {}
        Err(malformed) => assert!(malformed.at <= field.len()),
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
