//! Misuse by the local caller, the only kind of error.

use core::fmt;

/// Why a call on an endpoint failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no such association, or it has ended.
    NoAssociation,
    /// The association cannot do this in its current state (RFC 9260 §4), e.g. send after shutdown.
    WrongState,
    /// The stream number is not below the negotiated number of streams.
    NoSuchStream,
    /// The message is empty; SCTP cannot carry it (RFC 9260 §3.3.1).
    EmptyMessage,
    /// The message exceeds the size of the send buffer.
    MessageTooLarge {
        /// The maximum message size, in bytes.
        limit: usize,
    },
    /// A request lists too many streams; use an empty list for all streams.
    TooManyStreams {
        /// The maximum number of streams.
        limit: usize,
    },
    /// The send buffer is full; wait for [`crate::event::Event::Writable`].
    Full,
    /// There is no such path.
    NoSuchPath,
    /// The address is not unicast: unspecified, multicast or broadcast.
    BadAddress,
    /// The required extension was not negotiated with the peer.
    NotSupported,
    /// There is no shared key with this identifier.
    NoSuchKey,
    /// Another request of this kind is pending (RFC 6525 §5.1.1, RFC 5061 §5.1).
    Busy,
    /// The endpoint has reached its maximum number of associations.
    TooManyAssociations,
    /// An SCTP port is missing; it cannot be chosen here because the peer must already know it.
    NoPort,
    /// The peer's INIT, exchanged out of band, is unusable: connect with a handshake instead.
    BadInit,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAssociation => f.write_str("the association has ended or never existed"),
            Self::WrongState => f.write_str("the association is not in a state that allows this"),
            Self::NoSuchStream => f.write_str("the association has fewer streams than that"),
            Self::EmptyMessage => f.write_str("SCTP cannot carry an empty message"),
            Self::MessageTooLarge { limit } => {
                write!(f, "the message is larger than the send buffer allows ({limit} bytes)")
            }
            Self::TooManyStreams { limit } => {
                write!(f, "a request can name at most {limit} streams; an empty list means all")
            }
            Self::Full => f.write_str("the send buffer is full; wait until it is writable"),
            Self::NoSuchPath => f.write_str("the association has no such path"),
            Self::BadAddress => f.write_str("the address is not unicast"),
            Self::NotSupported => f.write_str("this extension was not negotiated with the peer"),
            Self::NoSuchKey => f.write_str("there is no shared key with this identifier"),
            Self::Busy => f.write_str("a request of this kind is still pending"),
            Self::TooManyAssociations => f.write_str("the endpoint has too many associations"),
            Self::NoPort => f.write_str("both SCTP ports must be given here"),
            Self::BadInit => {
                f.write_str("the peer's INIT is unusable; connect with a handshake instead")
            }
        }
    }
}

impl core::error::Error for Error {}
