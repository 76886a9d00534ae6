//! Announces the server's other transports: HTTP/3, and SCTP on a non-default port.

use std::time::Duration;

use http::HeaderValue;

use crate::alt_svc::SCTP_UDP;

/// The port at which clients expect SCTP inside UDP without an announcement (RFC 6951 §6.1).
const ENCAPSULATION_PORT: u16 = 9899;

/// The `Alt-Svc` field (RFC 7838 §3) of responses over HTTP/1 and HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AltSvcPolicy {
    /// `h3=":PORT"; ma=SECONDS`, with the port of the server, if it serves HTTP/3; and, with the
    /// protocol `x-eyas-sctp-udp`, the UDP port for SCTP, if that is not the default one.
    Announce {
        /// How long a client may use the alternative, in whole seconds.
        max_age: Duration,
    },
    /// Exactly this field value.
    Field(HeaderValue),
    /// No field.
    Off,
}

impl AltSvcPolicy {
    /// Returns the field for a server that serves HTTP/3 at one port and SCTP inside UDP at the
    /// other.
    pub(super) fn field(&self, http3: Option<u16>, sctp_udp: Option<u16>) -> Option<HeaderValue> {
        match self {
            Self::Announce { max_age } => {
                let http3 = http3.map(|port| ("h3", port));
                let sctp_udp = sctp_udp.filter(|port| *port != ENCAPSULATION_PORT);
                let alternatives = http3.into_iter().chain(sctp_udp.map(|port| (SCTP_UDP, port)));
                let seconds = max_age.as_secs();
                let alternatives =
                    alternatives.map(|(name, port)| format!("{name}=\":{port}\"; ma={seconds}"));
                let alternatives: Vec<_> = alternatives.collect();
                (!alternatives.is_empty())
                    .then(|| HeaderValue::try_from(alternatives.join(", ")).ok())
                    .flatten()
            }
            Self::Field(field) => Some(field.clone()),
            Self::Off => None,
        }
    }
}

impl Default for AltSvcPolicy {
    /// Returns the default: valid for one day, as in RFC 7838 §3.1.
    fn default() -> Self {
        Self::Announce { max_age: Duration::from_secs(24 * 60 * 60) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc7838 §3, §4
    //# servers SHOULD announce in an ALTSVC frame over HTTP/2
    //= otherwise: they send the field, and ignore such frames, which the HTTP/2 library does not
    //# expose
    #[test]
    fn the_field_has_the_format_of_the_rfc() {
        let field = AltSvcPolicy::default().field(Some(4433), None).unwrap();
        assert_eq!(field, "h3=\":4433\"; ma=86400");
        assert_eq!(AltSvcPolicy::Off.field(Some(4433), Some(9900)), None);
        assert_eq!(AltSvcPolicy::default().field(None, None), None);
    }

    #[test]
    fn sctp_is_announced_at_a_nonstandard_port() {
        let policy = AltSvcPolicy::default();
        assert_eq!(policy.field(None, Some(ENCAPSULATION_PORT)), None);
        let field = policy.field(None, Some(9900)).unwrap();
        assert_eq!(field, "x-eyas-sctp-udp=\":9900\"; ma=86400");
        let field = policy.field(Some(4433), Some(9900)).unwrap();
        assert_eq!(field, "h3=\":4433\"; ma=86400, x-eyas-sctp-udp=\":9900\"; ma=86400");
    }
}
