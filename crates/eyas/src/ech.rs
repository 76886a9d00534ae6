//! Encrypted ClientHello (RFC 9849): what a client offers, and what follows when a server does not accept it.
//!
//! | module | job |
//! | --- | --- |
//! | [`configs`] | the configurations of a server |
//! | [`offer`] | the rules: what an attempt sends, first and after a rejection |
//! | [`hpke`] | the encryption |
//! | [`choice`] | what a caller wants, also as text |

mod choice;
mod configs;
mod hpke;
mod offer;

pub use choice::{EchChoice, EchChoiceError};
pub use configs::{EchConfigError, EchConfigList};
pub(crate) use offer::{EchAttempt, EchOffer, EchParameters};

/// How clients use Encrypted ClientHello (RFC 9849), which hides the name of the server from everybody on the path.
///
/// The configurations come from the server's HTTPS or SVCB records (RFC 9848). TLS over TCP, MPTCP and SCTP streams and
/// QUIC use them alike; DTLS has no ECH. With [`Auto`](Self::Auto) and [`Required`](Self::Required) a race relies on
/// them: if each record of a server has them, nothing is tried beside the records (RFC 9848 §5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EchPolicy {
    /// Never: the name is sent in the clear, whatever the records say.
    Off,
    /// Where the server has configurations. Elsewhere QUIC sends an extension that looks the same and means nothing
    /// (GREASE, RFC 9849 §6.2), so that ECH does not stand out; TLS over streams sends it if it offers TLS 1.3 alone.
    #[default]
    Auto,
    /// Always where there is TLS or QUIC: nothing is sent to a server without configurations, or that does not accept
    /// them. Targets without security, such as those of `http://`, are not affected: their names are in the clear.
    Required,
}

/// What became of ECH in a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EchOutcome {
    /// The server accepted it: nobody on the path has seen its name. With the configurations that it accepted, which may
    /// be newer than those of its record.
    Accepted(EchConfigList),
    /// The server has proved to be the public name of its configurations, and has turned ECH off (RFC 9849 §6.1.6): its
    /// name was then sent in the clear.
    TurnedOff,
    /// The name was sent in the clear, beside an extension that only looks like ECH.
    Grease,
}

impl EchOutcome {
    /// Returns the name used in JSON and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accepted",
            Self::TurnedOff => "turned-off",
            Self::Grease => "grease",
        }
    }

    /// Returns the configurations that the server accepted.
    pub const fn accepted(&self) -> Option<&EchConfigList> {
        match self {
            Self::Accepted(configs) => Some(configs),
            Self::TurnedOff | Self::Grease => None,
        }
    }
}
