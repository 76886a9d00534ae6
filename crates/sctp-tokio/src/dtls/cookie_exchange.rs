//! The cookie exchange before a session: clients that cannot receive at their address are not
//! admitted, and no state is kept for them (RFC 6347 §4.2.1, RFC 9147 §5.1).
//!
//! The DTLS library makes its cookies with a secret of each session, so it needs the session first.
//! Here the response to a first ClientHello is made without one. A cookie contains everything
//! needed to reconstruct the first ClientHello from the second one, because both sides sign it in
//! DTLS 1.3. The library is then given both at once.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dimpl::Config;
use dimpl::CryptoError;
use dimpl::crypto::{CryptoProvider, HashAlgorithm, HmacProvider, rust_crypto};
use rustls::crypto::ring::default_provider;

use super::aead;
use super::client_hello::{
    COOKIE, ClientHello, DTLS_1_2, DTLS_1_3, PADDING, SUPPORTED_VERSIONS, client_hello, length16,
    record,
};

/// How long a cookie is valid: long enough for a client that lost a response or two.
const COOKIE_LIFE: Duration = Duration::from_secs(60);
/// The exact size of a cookie that the library accepts.
const COOKIE_BYTES: usize = 32;
/// The bytes at its start that say when the cookie was made and what the first ClientHello was
/// like.
const CONTENT_BYTES: usize = 8;

/// The types of the messages that request a cookie.
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

/// A client that has proved, with a cookie, that it can receive at its address.
#[derive(Debug)]
pub(super) struct VerifiedClient {
    pub(super) version: Version,
    /// The first ClientHello, in a record.
    pub(super) first: Vec<u8>,
    /// The response to it, in a record.
    pub(super) response: Vec<u8>,
    /// The cookie that the library must use as its own.
    pub(super) cookie: Cookie,
}

/// What to do with a datagram from a client without a session.
#[derive(Debug)]
pub(super) enum Action {
    /// Do nothing.
    Ignore,
    /// Send this back, and keep no state. It is no longer than the datagram received.
    RequestCookie(Vec<u8>),
    /// Begin a session.
    Admit(VerifiedClient),
}

/// Requests cookies and checks them.
#[derive(Debug)]
pub(super) struct CookieExchange {
    secret: [u8; 32],
    start: Instant,
}

impl CookieExchange {
    /// Creates a cookie exchange with its own secret; `None` if this machine provides no random
    /// bytes.
    pub(super) fn new() -> Option<Self> {
        let mut secret = [0; 32];
        default_provider().secure_random.fill(&mut secret).ok()?;
        Some(Self { secret, start: Instant::now() })
    }

    /// Decides what to do with a datagram.
    pub(super) fn decide(
        &self,
        now: Instant,
        remote: SocketAddr,
        datagram: &[u8],
        config: &Config,
    ) -> Action {
        let Some(hello) = ClientHello::read(datagram) else { return Action::Ignore };
        let client = match (hello.message_seq, hello.legacy_cookie(), hello.retry_cookie()) {
            (0, [], None) => {
                return self.request_cookie(now, remote, &hello, config, datagram.len());
            }
            (1, cookie @ [_, ..], None) => self.admit_1_2(now, remote, &hello, cookie),
            (1, [], Some(cookie)) => self.admit_1_3(now, remote, &hello, cookie, config),
            _ => None,
        };
        client.map_or(Action::Ignore, Action::Admit)
    }

    /// Returns the response to a first ClientHello: a HelloRetryRequest for a client that offers
    /// DTLS 1.3 with a usable key, a HelloVerifyRequest for others that offer DTLS 1.2.
    fn request_cookie(
        &self,
        now: Instant,
        remote: SocketAddr,
        hello: &ClientHello<'_>,
        config: &Config,
        received_bytes: usize,
    ) -> Action {
        let has_key = hello
            .key_shares()
            .any(|group| config.kx_groups().any(|known| known.name().as_u16() == group));
        let suite = suite_1_3(hello, config).filter(|_| hello.offers_dtls_1_3() && has_key);
        let response = if let Some(suite) = suite {
            let content = self.content(now, Version::Dtls13, padding(hello));
            retry_request(suite, &self.cookie(content, remote, hello.body()))
        } else {
            let is_supported =
                |suite| config.dtls12_cipher_suites().any(|known| known.suite().as_u16() == suite);
            if !hello.suites().any(is_supported) {
                return Action::Ignore;
            }
            let content = self.content(now, Version::Dtls12, None);
            verify_request(&self.cookie(content, remote, &hello.without_cookie()))
        };
        // Never send more to an address, which may be forged, than was received from it.
        if response.len() > received_bytes {
            Action::Ignore
        } else {
            Action::RequestCookie(response)
        }
    }

    /// Checks a second ClientHello of DTLS 1.2. The first one is not part of what is signed.
    fn admit_1_2(
        &self,
        now: Instant,
        remote: SocketAddr,
        hello: &ClientHello<'_>,
        cookie: &[u8],
    ) -> Option<VerifiedClient> {
        let cookie: Cookie = cookie.try_into().ok()?;
        let content = self.valid_content(now, Version::Dtls12, &cookie)?;
        let first = hello.without_cookie();
        if !constant_time_eq(&cookie, &self.cookie(content, remote, &first)) {
            return None;
        }
        let first = client_hello(&[&first, hello.extension_block()].concat());
        Some(VerifiedClient {
            version: Version::Dtls12,
            first,
            response: verify_request(&cookie),
            cookie,
        })
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
    ) -> Option<VerifiedClient> {
        let cookie: Cookie = cookie.try_into().ok()?;
        let content = self.valid_content(now, Version::Dtls13, &cookie)?;
        let first = first_hello(hello, &content);
        if !constant_time_eq(&cookie, &self.cookie(content, remote, &first)) {
            return None;
        }
        let response = retry_request(suite_1_3(hello, config)?, &cookie);
        Some(VerifiedClient {
            version: Version::Dtls13,
            first: client_hello(&first),
            response,
            cookie,
        })
    }

    /// Returns the content of a cookie: the time, the version, and position and length of the
    /// padding.
    fn content(
        &self,
        now: Instant,
        version: Version,
        padding: Option<(u8, u16)>,
    ) -> [u8; CONTENT_BYTES] {
        let [a, b, c, d] = self.seconds(now).to_be_bytes();
        let (position, length) = padding.unwrap_or((u8::MAX, 0));
        let [e, f] = length.to_be_bytes();
        [a, b, c, d, e, f, position, version as u8]
    }

    /// Returns the content of a cookie if its time and version are valid. Its HMAC is not checked
    /// here.
    fn valid_content(
        &self,
        now: Instant,
        version: Version,
        cookie: &Cookie,
    ) -> Option<[u8; CONTENT_BYTES]> {
        let content: [u8; CONTENT_BYTES] = *cookie.first_chunk()?;
        let created = u32::from_be_bytes(*content.first_chunk()?);
        let age = self.seconds(now).checked_sub(created)?;
        let is_valid = u64::from(age) <= COOKIE_LIFE.as_secs() && content[7] == version as u8;
        is_valid.then_some(content)
    }

    fn seconds(&self, now: Instant) -> u32 {
        u32::try_from(now.saturating_duration_since(self.start).as_secs()).unwrap_or(u32::MAX)
    }

    /// Returns the cookie for a ClientHello that was received from this address.
    fn cookie(&self, content: [u8; CONTENT_BYTES], remote: SocketAddr, hello: &[u8]) -> Cookie {
        let address = remote.ip().to_canonical().to_string();
        let port = remote.port().to_be_bytes();
        let input =
            [&content[..], &length16(address.len()), address.as_bytes(), &port, hello].concat();
        let hmac = rust_crypto::default_provider().hmac_provider;
        let mut cookie = hmac.hmac_sha256(&self.secret, &input).unwrap_or_default();
        cookie[..CONTENT_BYTES].copy_from_slice(&content);
        cookie
    }
}

/// Returns the cipher suite of DTLS 1.3 that the library selects.
fn suite_1_3(hello: &ClientHello<'_>, config: &Config) -> Option<u16> {
    let is_supported =
        |suite: u16| config.dtls13_cipher_suites().any(|known| known.suite().as_u16() == suite);
    hello.suites().find(|suite| is_supported(*suite))
}

/// Returns the position of the padding among the extensions and its length.
fn padding(hello: &ClientHello<'_>) -> Option<(u8, u16)> {
    let (position, (_, content)) =
        hello.extensions().enumerate().find(|(_, (kind, _))| *kind == PADDING)?;
    Some((u8::try_from(position).ok()?, u16::try_from(content.len()).ok()?))
}

/// Reconstructs the first ClientHello from the second one and the content of its cookie.
fn first_hello(hello: &ClientHello<'_>, content: &[u8; CONTENT_BYTES]) -> Vec<u8> {
    let (position, length) =
        (usize::from(content[6]), usize::from(u16::from_be_bytes([content[4], content[5]])));
    let zeros = vec![0; length];
    let mut extensions: Vec<_> =
        hello.extensions().filter(|(kind, _)| ![COOKIE, PADDING].contains(kind)).collect();
    if position != usize::from(u8::MAX) && position <= extensions.len() {
        extensions.insert(position, (PADDING, &zeros));
    }
    let block: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, content)| {
            [&kind.to_be_bytes()[..], &length16(content.len()), content].concat()
        })
        .collect();
    [hello.without_cookie(), length16(block.len()).to_vec(), block].concat()
}

/// Returns a HelloRetryRequest (RFC 9147 §5.1), exactly as the library encodes it.
fn retry_request(suite: u16, cookie: &Cookie) -> Vec<u8> {
    let versions = [SUPPORTED_VERSIONS.to_be_bytes(), [0, 2], DTLS_1_3.to_be_bytes()].concat();
    let head = [COOKIE.to_be_bytes(), length16(2 + COOKIE_BYTES), length16(COOKIE_BYTES)].concat();
    let extensions = [versions, head, cookie.to_vec()].concat();
    let version = DTLS_1_2.to_be_bytes();
    // No session to resume, no compression.
    let fixed = [&version[..], &RETRY_RANDOM, &[0], &suite.to_be_bytes(), &[0]].concat();
    record(SERVER_HELLO, &[fixed, length16(extensions.len()).to_vec(), extensions].concat())
}

/// Returns a HelloVerifyRequest, which names DTLS 1.0 whichever version follows (RFC 6347 §4.2.1).
fn verify_request(cookie: &Cookie) -> Vec<u8> {
    let length = COOKIE_BYTES as u8;
    record(HELLO_VERIFY_REQUEST, &[&[0xfe, 0xff, length][..], cookie].concat())
}

/// Compares in constant time.
fn constant_time_eq(one: &Cookie, other: &Cookie) -> bool {
    one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

thread_local! {
    /// The cookie that the library must use while it is given the two ClientHellos.
    static COOKIE_TO_USE: Cell<Option<Cookie>> = const { Cell::new(None) };
}

/// Makes the library use this cookie in place of one that it generates, during one call.
pub(super) fn with_cookie<T>(cookie: Cookie, act: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            COOKIE_TO_USE.set(None);
        }
    }
    let _reset = Reset;
    COOKIE_TO_USE.set(Some(cookie));
    act()
}

/// Returns the cryptography of the library, except that its cookies can be set by [`with_cookie`],
/// and its ciphers are those of `ring`.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        hmac_provider: &PresetCookies,
        dtls13_cipher_suites: aead::SUITES,
        ..rust_crypto::default_provider()
    }
}

#[derive(Debug)]
struct PresetCookies;

impl HmacProvider for PresetCookies {
    /// Computes an HMAC. The library generates only cookies this way: everything else specifies its
    /// hash.
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], CryptoError> {
        let hmac = rust_crypto::default_provider().hmac_provider;
        COOKIE_TO_USE.get().map_or_else(|| hmac.hmac_sha256(key, data), Ok)
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
