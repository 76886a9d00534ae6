//! Detects requests that have already passed this gateway.

use std::hash::{BuildHasher, RandomState};

use http::{HeaderMap, HeaderValue, Version, header};

/// The name of a gateway in `Via` (RFC 9110 §7.6.3): a unique pseudonym, which does not disclose its host.
#[derive(Clone, Debug)]
pub(super) struct Pseudonym(String);

impl Pseudonym {
    pub(super) fn new() -> Self {
        // Used only for its random keys.
        Self(format!("eyas-{:016x}", RandomState::new().hash_one(0_u8)))
    }

    /// Returns whether the message has passed this gateway.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::VIA).iter();
        let hops =
            values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        hops.filter_map(|hop| hop.split_whitespace().nth(1)).any(|by| by == self.0)
    }

    /// Adds this gateway with the version in which the message arrived.
    pub(super) fn add(&self, version: Version, headers: &mut HeaderMap) {
        let version = match version {
            Version::HTTP_09 => "0.9",
            Version::HTTP_10 => "1.0",
            Version::HTTP_2 => "2",
            Version::HTTP_3 => "3",
            _ => "1.1",
        };
        if let Ok(hop) = HeaderValue::try_from(format!("{version} {}", self.0)) {
            headers.append(header::VIA, hop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_recognises_only_itself() {
        let (one, other) = (Pseudonym::new(), Pseudonym::new());
        let mut headers = HeaderMap::new();
        headers.append(header::VIA, HeaderValue::from_static("1.0 fred, 1.1 p.example.net (x)"));
        one.add(Version::HTTP_3, &mut headers);
        assert!(one.is_in(&headers));
        assert!(!other.is_in(&headers));
        let text = headers.get_all(header::VIA).iter().next_back().unwrap().to_str().unwrap();
        assert!(text.starts_with("3 eyas-"), "{text}");
    }
}
