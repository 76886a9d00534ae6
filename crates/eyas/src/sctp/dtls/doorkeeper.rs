//! The cookie exchange before a session: clients that cannot receive at their address are not
//! admitted, and no state is kept for them (RFC 6347 §4.2.1, RFC 9147 §5.1).
//!
//! The DTLS library makes its cookies with a secret of each session, so it needs the session first.
//! Here the answer to a first ClientHello is made without one. A cookie contains everything needed
//! to reconstruct, from the second ClientHello, what the first one was, which is part of what both
//! sides sign in DTLS 1.3; the library is then shown both at once.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dimpl::Config;
use dimpl::CryptoError;
use dimpl::crypto::{CryptoProvider, HashAlgorithm, HmacProvider, rust_crypto};
use rustls::crypto::ring::default_provider;

use super::client_hello::{
    COOKIE, ClientHello, DTLS_1_2, DTLS_1_3, PADDING, SUPPORTED_VERSIONS, client_hello, length16,
    record,
};

/// How long a cookie is good for: a client that lost an answer or two is still in time.
const COOKIE_LIFE: Duration = Duration::from_secs(60);
/// What the library takes, no more and no less.
const COOKIE_BYTES: usize = 32;
/// Of them, those that say when the cookie was made and what the first ClientHello was like.
const TOLD: usize = 8;

/// The types of the messages that ask for a cookie.
const SERVER_HELLO: u8 = 2;
const HELLO_VERIFY_REQUEST: u8 = 3;
/// What makes a ServerHello a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

pub(super) type Cookie = [u8; COOKIE_BYTES];

/// The version of DTLS that a cookie was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Dtls12,
    Dtls13,
}

/// Somebody who showed that it receives at its address.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) version: Version,
    /// The first ClientHello, in a record.
    pub(super) first: Vec<u8>,
    /// The answer to it, in a record.
    pub(super) answer: Vec<u8>,
    /// What the library is to take for its own cookie.
    pub(super) cookie: Cookie,
}

/// What comes of a datagram from somebody without a session.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing.
    Ignore,
    /// This is sent back, and nothing is kept. It is no longer than what came.
    Ask(Vec<u8>),
    /// A session may begin.
    Admit(Guest),
}

/// Asks for cookies and checks them.
#[derive(Debug)]
pub(super) struct Doorkeeper {
    secret: [u8; 32],
    start: Instant,
}

impl Doorkeeper {
    /// Creates a doorkeeper with its own secret; `None` if this machine provides no random bytes.
    pub(super) fn new() -> Option<Self> {
        let mut secret = [0; 32];
        default_provider().secure_random.fill(&mut secret).ok()?;
        Some(Self { secret, start: Instant::now() })
    }

    /// Judges a datagram.
    pub(super) fn judge(
        &self,
        now: Instant,
        remote: SocketAddr,
        datagram: &[u8],
        config: &Config,
    ) -> Verdict {
        let Some(hello) = ClientHello::read(datagram) else { return Verdict::Ignore };
        let guest = match (hello.message_seq, hello.legacy_cookie(), hello.retry_cookie()) {
            (0, [], None) => return self.ask(now, remote, &hello, config, datagram.len()),
            (1, cookie @ [_, ..], None) => self.admit_1_2(now, remote, &hello, cookie),
            (1, [], Some(cookie)) => self.admit_1_3(now, remote, &hello, cookie, config),
            _ => None,
        };
        guest.map_or(Verdict::Ignore, Verdict::Admit)
    }

    /// Returns the answer to a first ClientHello: a HelloRetryRequest for a client that offers DTLS
    /// 1.3 with a usable key, a HelloVerifyRequest for others that offer DTLS 1.2.
    fn ask(
        &self,
        now: Instant,
        remote: SocketAddr,
        hello: &ClientHello<'_>,
        config: &Config,
        came: usize,
    ) -> Verdict {
        let has_key = hello
            .key_shares()
            .any(|group| config.kx_groups().any(|known| known.name().as_u16() == group));
        let suite = suite_1_3(hello, config).filter(|_| hello.offers_dtls_1_3() && has_key);
        let answer = if let Some(suite) = suite {
            let told = self.content(now, Version::Dtls13, padding(hello));
            retry_request(suite, &self.cookie(told, remote, hello.body()))
        } else {
            let speaks_1_2 =
                |suite| config.dtls12_cipher_suites().any(|known| known.suite().as_u16() == suite);
            if !hello.suites().any(speaks_1_2) {
                return Verdict::Ignore;
            }
            let told = self.content(now, Version::Dtls12, None);
            verify_request(&self.cookie(told, remote, &hello.without_cookie()))
        };
        // Nobody gets more sent to an address that it forged than it sends itself.
        if answer.len() > came { Verdict::Ignore } else { Verdict::Ask(answer) }
    }

    /// Checks a second ClientHello of DTLS 1.2. The first one is not part of what is signed.
    fn admit_1_2(
        &self,
        now: Instant,
        remote: SocketAddr,
        hello: &ClientHello<'_>,
        cookie: &[u8],
    ) -> Option<Guest> {
        let cookie: Cookie = cookie.try_into().ok()?;
        let told = self.believable(now, Version::Dtls12, &cookie)?;
        let first = hello.without_cookie();
        if !is_same(&cookie, &self.cookie(told, remote, &first)) {
            return None;
        }
        let first = client_hello(&[&first, hello.extension_block()].concat());
        Some(Guest { version: Version::Dtls12, first, answer: verify_request(&cookie), cookie })
    }

    /// Checks a second ClientHello of DTLS 1.3: the first one is the same without the cookie, and
    /// with the padding that it had (RFC 8446 §4.1.2).
    fn admit_1_3(
        &self,
        now: Instant,
        remote: SocketAddr,
        hello: &ClientHello<'_>,
        cookie: &[u8],
        config: &Config,
    ) -> Option<Guest> {
        let cookie: Cookie = cookie.try_into().ok()?;
        let told = self.believable(now, Version::Dtls13, &cookie)?;
        let first = as_it_was(hello, &told);
        if !is_same(&cookie, &self.cookie(told, remote, &first)) {
            return None;
        }
        let answer = retry_request(suite_1_3(hello, config)?, &cookie);
        Some(Guest { version: Version::Dtls13, first: client_hello(&first), answer, cookie })
    }

    /// Returns the content of a cookie: the time, the version, and position and length of the
    /// padding.
    fn content(&self, now: Instant, version: Version, padding: Option<(u8, u16)>) -> [u8; TOLD] {
        let [a, b, c, d] = self.seconds(now).to_be_bytes();
        let (place, length) = padding.unwrap_or((u8::MAX, 0));
        let [e, f] = length.to_be_bytes();
        [a, b, c, d, e, f, place, version as u8]
    }

    /// Returns the content of a cookie, if it may be one of ours that is still valid.
    fn believable(&self, now: Instant, version: Version, cookie: &Cookie) -> Option<[u8; TOLD]> {
        let told: [u8; TOLD] = *cookie.first_chunk()?;
        let made = u32::from_be_bytes(*told.first_chunk()?);
        let age = self.seconds(now).checked_sub(made)?;
        let is_good = u64::from(age) <= COOKIE_LIFE.as_secs() && told[7] == version as u8;
        is_good.then_some(told)
    }

    fn seconds(&self, now: Instant) -> u32 {
        u32::try_from(now.saturating_duration_since(self.start).as_secs()).unwrap_or(u32::MAX)
    }

    /// Returns the cookie for what was received from this address.
    fn cookie(&self, told: [u8; TOLD], remote: SocketAddr, said: &[u8]) -> Cookie {
        let address = remote.ip().to_canonical().to_string();
        let port = remote.port().to_be_bytes();
        let all = [&told[..], &length16(address.len()), address.as_bytes(), &port, said].concat();
        let hmac = rust_crypto::default_provider().hmac_provider;
        let mut cookie = hmac.hmac_sha256(&self.secret, &all).unwrap_or_default();
        cookie[..TOLD].copy_from_slice(&told);
        cookie
    }
}

/// Returns the cipher suite of DTLS 1.3 that the library selects.
fn suite_1_3(hello: &ClientHello<'_>, config: &Config) -> Option<u16> {
    let knows =
        |suite: u16| config.dtls13_cipher_suites().any(|known| known.suite().as_u16() == suite);
    hello.suites().find(|suite| knows(*suite))
}

/// Returns the position of the padding among the extensions and its length.
fn padding(hello: &ClientHello<'_>) -> Option<(u8, u16)> {
    let (place, (_, content)) =
        hello.extensions().enumerate().find(|(_, (kind, _))| *kind == PADDING)?;
    Some((u8::try_from(place).ok()?, u16::try_from(content.len()).ok()?))
}

/// Reconstructs the first ClientHello from the second one and the content of its cookie.
fn as_it_was(hello: &ClientHello<'_>, told: &[u8; TOLD]) -> Vec<u8> {
    let (place, length) =
        (usize::from(told[6]), usize::from(u16::from_be_bytes([told[4], told[5]])));
    let zeros = vec![0; length];
    let mut extensions: Vec<_> =
        hello.extensions().filter(|(kind, _)| ![COOKIE, PADDING].contains(kind)).collect();
    if place != usize::from(u8::MAX) && place <= extensions.len() {
        extensions.insert(place, (PADDING, &zeros));
    }
    let block: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, content)| {
            [&kind.to_be_bytes()[..], &length16(content.len()), content].concat()
        })
        .collect();
    [hello.without_cookie(), length16(block.len()).to_vec(), block].concat()
}

/// Returns a HelloRetryRequest (RFC 9147 §5.1), exactly as the library writes it.
fn retry_request(suite: u16, cookie: &Cookie) -> Vec<u8> {
    let versions = [SUPPORTED_VERSIONS.to_be_bytes(), [0, 2], DTLS_1_3.to_be_bytes()].concat();
    let head = [COOKIE.to_be_bytes(), length16(2 + COOKIE_BYTES), length16(COOKIE_BYTES)].concat();
    let extensions = [versions, head, cookie.to_vec()].concat();
    let version = DTLS_1_2.to_be_bytes();
    // No session to resume, no compression.
    let fixed = [&version[..], &RETRY_RANDOM, &[0], &suite.to_be_bytes(), &[0]].concat();
    record(SERVER_HELLO, &[fixed, length16(extensions.len()).to_vec(), extensions].concat())
}

/// Returns a HelloVerifyRequest, which names DTLS 1.0 whatever follows (RFC 6347 §4.2.1).
fn verify_request(cookie: &Cookie) -> Vec<u8> {
    let length = COOKIE_BYTES as u8;
    record(HELLO_VERIFY_REQUEST, &[&[0xfe, 0xff, length][..], cookie].concat())
}

/// Compares in the same time wherever the difference is.
fn is_same(one: &Cookie, other: &Cookie) -> bool {
    one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

thread_local! {
    /// What the library is to take for its cookie, while it is shown the two ClientHellos.
    static DICTATED: Cell<Option<Cookie>> = const { Cell::new(None) };
}

/// Makes the library use this as the cookie that it generates, during one call.
pub(super) fn dictate<T>(cookie: Cookie, act: impl FnOnce() -> T) -> T {
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            DICTATED.set(None);
        }
    }
    let _forget = Forget;
    DICTATED.set(Some(cookie));
    act()
}

/// Returns the cryptography of the library, except its cookies, which come from here.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider { hmac_provider: &CookiesFromHere, ..rust_crypto::default_provider() }
}

#[derive(Debug)]
struct CookiesFromHere;

impl HmacProvider for CookiesFromHere {
    /// Computes an HMAC. The library generates only cookies this way: everything else specifies its
    /// hash.
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], CryptoError> {
        let hmac = rust_crypto::default_provider().hmac_provider;
        DICTATED.get().map_or_else(|| hmac.hmac_sha256(key, data), Ok)
    }

    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out)
    }
}
