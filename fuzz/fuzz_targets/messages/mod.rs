//! The protection of messages, whose modules are private to `eyas`, and its two ends.

use bytes::Bytes;

#[path = "../../../crates/eyas/src/sctp/messages/protection.rs"]
#[expect(dead_code, reason = "no TLS session exports the keys here")]
mod protection;
#[path = "../../../crates/eyas/src/sctp/messages/window.rs"]
mod window;

use protection::{Keys, Opener, Sealer};

pub const OVERHEAD: usize = protection::OVERHEAD;
pub const WIDTH: u64 = window::WIDTH;

/// One end of an association, for messages on one stream.
pub struct End {
    sealing: Sealer,
    opening: Opener,
}

impl End {
    /// Returns both ends, with keys that are always the same.
    pub fn pair(stream: u16) -> (Self, Self) {
        let (one, other) = ([1; Keys::SECRET], [2; Keys::SECRET]);
        (Self::new(&one, &other, stream), Self::new(&other, &one, stream))
    }

    fn new(ours: &[u8; Keys::SECRET], theirs: &[u8; Keys::SECRET], stream: u16) -> Self {
        let keys = Keys::new(ours, theirs).expect("the secrets are long enough");
        let (sealing, opening) = keys.split(stream);
        Self { sealing, opening }
    }

    pub fn seal(&mut self, message: &[u8]) -> Bytes {
        self.sealing.seal(message).expect("few numbers are in use")
    }

    pub fn open(&mut self, sealed: Vec<u8>) -> Option<Bytes> {
        self.opening.open(sealed)
    }
}

/// The window against replays by itself.
#[derive(Default)]
pub struct Window(window::Window);

impl Window {
    pub fn is_new(&self, number: u64) -> bool {
        self.0.is_new(number)
    }

    pub fn note(&mut self, number: u64) {
        self.0.note(number);
    }
}
