use super::*;
use crate::wire::ChunkType;

const LIFE: Duration = Duration::from_secs(60);
const KEY_LIFE: Duration = Duration::from_secs(600);

fn keys() -> CookieKeys {
    CookieKeys::new(RandomBytes::new([3; 32]), Duration::ZERO, KEY_LIFE)
}

fn params(tag: u32) -> InitParams {
    InitParams {
        tag: VerificationTag(tag),
        window: 100_000,
        outbound: 17,
        inbound: 65_535,
        initial_tsn: Tsn(u32::MAX),
        addresses: alloc::vec!["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()],
        offers: AgreedExtensions { interleaving: true, ecn: true, ..AgreedExtensions::default() },
        authentication: Some(AuthOffer::new([9; 32], &[ChunkType::ASCONF])),
    }
}

fn cookie(created: Duration) -> CookieContents {
    CookieContents {
        created,
        lifetime: LIFE,
        remote: "[2001:db8::1]:9899".parse().unwrap(),
        local_port: 7,
        remote_port: 50_000,
        tie_tags: (5, 6),
        peer: params(1),
        own: InitParams { authentication: None, addresses: Vec::new(), ..params(2) },
    }
}

#[test]
fn a_cookie_round_trips() {
    let mut keys = keys();
    let sealed = keys.seal(Duration::ZERO, &cookie(Duration::ZERO));
    assert_eq!(keys.open(LIFE, &sealed), Ok(cookie(Duration::ZERO)));
}

//= rfc9260 §5.1.3
//# the cookie is signed: HMAC-SHA-256, 16 bytes
#[test]
fn a_cookie_with_any_bit_changed_is_forged() {
    let mut keys = keys();
    let sealed = keys.seal(Duration::ZERO, &cookie(Duration::ZERO));
    for at in 0..sealed.len() {
        let mut changed = sealed.to_vec();
        changed[at] ^= 1;
        assert_eq!(keys.open(Duration::ZERO, &changed.into()), Err(BadCookie::Forged), "byte {at}");
    }
}

#[test]
fn a_truncated_cookie_is_forged() {
    let mut keys = keys();
    let sealed = keys.seal(Duration::ZERO, &cookie(Duration::ZERO));
    for length in 0..sealed.len() {
        assert_eq!(keys.open(Duration::ZERO, &sealed.slice(..length)), Err(BadCookie::Forged));
    }
}

#[test]
fn a_cookie_of_another_endpoint_is_forged() {
    let sealed = keys().seal(Duration::ZERO, &cookie(Duration::ZERO));
    let mut others = CookieKeys::new(RandomBytes::new([4; 32]), Duration::ZERO, KEY_LIFE);
    assert_eq!(others.open(Duration::ZERO, &sealed), Err(BadCookie::Forged));
}

#[test]
fn a_stale_cookie_reports_its_staleness() {
    let mut keys = keys();
    let sealed = keys.seal(Duration::ZERO, &cookie(Duration::ZERO));
    let late = Duration::from_millis(1500);
    let cookie = Box::new(cookie(Duration::ZERO));
    assert_eq!(keys.open(LIFE + late, &sealed), Err(BadCookie::Stale { by: late, cookie }));
}

//= rfc9260 §5.1.3
//# keys of cookies change every ten minutes; the previous one stays valid for ten more
#[test]
fn a_key_stays_valid_for_one_more_rotation() {
    let mut keys = keys();
    let at = KEY_LIFE - Duration::from_secs(1);
    let sealed = keys.seal(at, &cookie(at));
    assert!(keys.open(at + Duration::from_secs(30), &sealed).is_ok());
    let long = CookieContents { lifetime: KEY_LIFE * 9, ..cookie(at) };
    let sealed = keys.seal(at + Duration::from_secs(30), &long);
    assert!(keys.open(KEY_LIFE * 2 + Duration::from_secs(40), &sealed).is_ok());
    assert_eq!(keys.open(KEY_LIFE * 3 + Duration::from_secs(50), &sealed), Err(BadCookie::Forged));
}

#[test]
fn after_a_long_pause_no_old_key_is_valid() {
    let mut keys = keys();
    let long = CookieContents { lifetime: KEY_LIFE * 9, ..cookie(Duration::ZERO) };
    let sealed = keys.seal(Duration::ZERO, &long);
    assert_eq!(keys.open(KEY_LIFE * 2, &sealed), Err(BadCookie::Forged));
}

/// 24 bytes of each side are values that every association needs.
#[test]
fn a_cookie_for_a_peer_with_one_address_is_short() {
    let bare = |tag| InitParams { addresses: Vec::new(), authentication: None, ..params(tag) };
    let cookie = CookieContents {
        remote: "192.0.2.1:9899".parse().unwrap(),
        tie_tags: (0, 0),
        peer: bare(1),
        own: bare(2),
        ..cookie(Duration::ZERO)
    };
    let sealed = keys().seal(Duration::ZERO, &cookie);
    assert_eq!(keys().open(Duration::ZERO, &sealed), Ok(cookie));
    assert!(sealed.len() <= 76, "{} bytes", sealed.len());
}

#[test]
fn the_age_of_a_cookie_survives_the_wrap_of_its_time() {
    for made in [0, 1 << 40, (1 << 40) - 1, 1_900_000_000_000_000] {
        let at = Duration::from_micros(made);
        let mut keys = CookieKeys::new(RandomBytes::new([3; 32]), at, KEY_LIFE);
        let sealed = keys.seal(at, &cookie(at));
        assert_eq!(keys.open(at + LIFE, &sealed), Ok(cookie(at)));
        let late = keys.open(at + LIFE + Duration::from_micros(1), &sealed);
        assert!(matches!(late, Err(BadCookie::Stale { by, .. }) if by.as_micros() == 1));
    }
}
