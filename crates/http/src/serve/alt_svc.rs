//! What the server says about its HTTP/3 side.

use std::time::Duration;

use http::HeaderValue;

/// The `Alt-Svc` field (RFC 7838 §3) of responses over HTTP/1 and HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AltSvcPolicy {
    /// `h3=":PORT"; ma=SECONDS`, with the port of the server, if it serves HTTP/3.
    Announce {
        /// For how long a client may rely on it, in whole seconds.
        max_age: Duration,
    },
    /// This field, as it is.
    Field(HeaderValue),
    /// No field.
    Off,
}

impl AltSvcPolicy {
    /// The field for a server on this port that serves HTTP/3 or does not.
    pub(super) fn field(&self, port: u16, with_http3: bool) -> Option<HeaderValue> {
        match self {
            Self::Announce { max_age } if with_http3 => {
                HeaderValue::try_from(format!("h3=\":{port}\"; ma={}", max_age.as_secs())).ok()
            }
            Self::Field(field) => Some(field.clone()),
            Self::Announce { .. } | Self::Off => None,
        }
    }
}

impl Default for AltSvcPolicy {
    /// Announced for a day, as RFC 7838 §3.1 has it.
    fn default() -> Self {
        Self::Announce { max_age: Duration::from_secs(24 * 60 * 60) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_as_the_rfc_writes_it() {
        let field = AltSvcPolicy::default().field(4433, true).unwrap();
        assert_eq!(field, "h3=\":4433\"; ma=86400");
        assert_eq!(AltSvcPolicy::Off.field(4433, true), None);
        assert_eq!(AltSvcPolicy::default().field(4433, false), None);
    }
}
