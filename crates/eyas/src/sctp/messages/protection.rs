//! Messages under keys that a TLS 1.3 session exports; pure.
//!
//! A protected message is a number, of eight bytes, and the message encrypted with
//! ChaCha20-Poly1305: the nonce is that of RFC 8446 §5.3, and the number of the stream is
//! authenticated with it. Each direction has its own keys.

use std::fmt;

use bytes::Bytes;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::ProtocolVersion;
use tokio_rustls::TlsStream;

use super::window::Window;

/// The label of the exporter (RFC 5705 §4, RFC 8446 §7.5).
const LABEL: &[u8] = b"EXPERIMENTAL eyas sctp messages";
/// The directions, as contexts of the exporter.
const CLIENT: &[u8] = b"client";
const SERVER: &[u8] = b"server";
const KEY: usize = 32;
const NUMBER: usize = 8;
const TAG: usize = 16;
/// Bytes that protection adds to a message.
pub(super) const OVERHEAD: usize = NUMBER + TAG;
/// The number of forgeries after which no more messages are accepted (RFC 9001 §6.6).
const MAX_FORGERIES: u64 = 1 << 36;

/// The keys of both directions. They are used once: a second sender would count from 0 again.
#[derive(Debug)]
pub(in crate::sctp) struct Keys {
    ours: DirectionKey,
    theirs: DirectionKey,
}

struct DirectionKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
}

/// Protects messages.
#[derive(Debug)]
pub(super) struct Sealer {
    key: DirectionKey,
    stream: [u8; 2],
    next: u64,
}

/// Decrypts protected messages, each once, in any order.
#[derive(Debug)]
pub(super) struct Opener {
    key: DirectionKey,
    stream: [u8; 2],
    window: Window,
    forgeries: u64,
}

impl Keys {
    /// The length of the secret of a direction: a key and an IV.
    pub(super) const SECRET: usize = KEY + NONCE_LEN;

    /// Exports the keys from a session; `None` unless that is TLS 1.3, in which they depend on the
    /// whole handshake.
    pub(in crate::sctp) fn export<S>(tls: &TlsStream<S>) -> Option<Self> {
        if tls.get_ref().1.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
            return None;
        }
        let export = |direction: &[u8]| {
            let secret = [0; Self::SECRET];
            let secret = match tls {
                TlsStream::Client(tls) => {
                    tls.get_ref().1.export_keying_material(secret, LABEL, Some(direction))
                }
                TlsStream::Server(tls) => {
                    tls.get_ref().1.export_keying_material(secret, LABEL, Some(direction))
                }
            };
            secret.ok()
        };
        let (ours, theirs) = match tls {
            TlsStream::Client(_) => (CLIENT, SERVER),
            TlsStream::Server(_) => (SERVER, CLIENT),
        };
        Self::new(&export(ours)?, &export(theirs)?)
    }

    /// Creates the keys from the secret of each direction.
    pub(super) fn new(ours: &[u8; Self::SECRET], theirs: &[u8; Self::SECRET]) -> Option<Self> {
        Some(Self { ours: DirectionKey::new(ours)?, theirs: DirectionKey::new(theirs)? })
    }

    /// Returns what encrypts messages to the peer on this stream, and what decrypts those of the
    /// peer.
    pub(super) fn split(self, stream: u16) -> (Sealer, Opener) {
        let stream = stream.to_be_bytes();
        let sealer = Sealer { key: self.ours, stream, next: 0 };
        let window = Window::default();
        (sealer, Opener { key: self.theirs, stream, window, forgeries: 0 })
    }
}

impl DirectionKey {
    fn new(secret: &[u8; KEY + NONCE_LEN]) -> Option<Self> {
        let (key, iv) = secret.split_first_chunk::<KEY>()?;
        let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).ok()?);
        Some(Self { key, iv: iv.try_into().ok()? })
    }

    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number_byte) in nonce.iter_mut().rev().zip(number.to_be_bytes().iter().rev()) {
            *byte ^= number_byte;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Does not show the key.
impl fmt::Debug for DirectionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectionKey").finish_non_exhaustive()
    }
}

impl Sealer {
    /// Protects a message; `None` once all numbers are used.
    pub(super) fn seal(&mut self, message: &[u8]) -> Option<Bytes> {
        let number = self.next;
        self.next = number.checked_add(1)?;
        let mut sealed = Vec::with_capacity(message.len() + OVERHEAD);
        sealed.extend_from_slice(&number.to_be_bytes());
        sealed.extend_from_slice(message);
        let (nonce, stream) = (self.key.nonce(number), Aad::from(self.stream));
        let contents = sealed.get_mut(NUMBER..)?;
        let tag = self.key.key.seal_in_place_separate_tag(nonce, stream, contents).ok()?;
        sealed.extend_from_slice(tag.as_ref());
        Some(sealed.into())
    }
}

impl Opener {
    /// Decrypts a message, if the peer protected it and it has not arrived before.
    pub(super) fn open(&mut self, mut sealed: Vec<u8>) -> Option<Bytes> {
        let number = u64::from_be_bytes(*sealed.first_chunk::<NUMBER>()?);
        if !self.window.is_new(number) || self.forgeries >= MAX_FORGERIES {
            return None;
        }
        let (nonce, stream) = (self.key.nonce(number), Aad::from(self.stream));
        let Ok(message) = self.key.key.open_in_place(nonce, stream, sealed.get_mut(NUMBER..)?)
        else {
            self.forgeries += 1;
            return None;
        };
        let length = message.len();
        // Only authentic messages move the window.
        self.window.record(number);
        Some(Bytes::from(sealed).slice(NUMBER..NUMBER + length))
    }
}

#[cfg(test)]
impl Keys {
    /// Returns keys for both ends without a session.
    pub(super) fn pair() -> (Self, Self) {
        let (one, other) = ([1; Self::SECRET], [2; Self::SECRET]);
        let keys = |ours, theirs| Self::new(ours, theirs).expect("they are long enough");
        (keys(&one, &other), keys(&other, &one))
    }
}
