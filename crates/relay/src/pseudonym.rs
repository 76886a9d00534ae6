//! The name of a proxy or gateway in `Via` (RFC 9110 §7.6.3), by which it recognises requests that have already
//! passed it.

use std::hash::{BuildHasher, RandomState};

use http::{HeaderMap, HeaderValue, Version, header};

/// A unique name, which does not disclose its host.
#[derive(Clone, Debug)]
pub struct ProxyPseudonym(String);

impl Default for ProxyPseudonym {
    fn default() -> Self {
        Self::new()
    }
}

impl ProxyPseudonym {
    /// Returns a name that no other proxy has.
    pub fn new() -> Self {
        // Used only for its random keys.
        Self(format!("eyas-{:016x}", RandomState::new().hash_one(0_u8)))
    }

    /// Returns whether a message with these fields has passed here.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        headers.get_all(header::VIA).iter().any(|value| self.is_among(value))
    }

    /// Returns whether a value of the field names it.
    pub(crate) fn is_among(&self, hops: &HeaderValue) -> bool {
        let hops = String::from_utf8_lossy(hops.as_bytes());
        hops.split(',').filter_map(|hop| hop.split_whitespace().nth(1)).any(|by| by == self.0)
    }

    /// Adds it with the version in which the message arrived.
    pub fn add(&self, version: Version, headers: &mut HeaderMap) {
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

/// Returns the values of the fields of one message as one value, in their order (RFC 9110 §5.3).
pub fn combined<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<HeaderValue> {
    let values: Vec<&[u8]> = values.collect();
    if values.is_empty() {
        return None;
    }
    HeaderValue::from_bytes(&values.join(&b", "[..])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_recognised_by_itself_only() {
        let (one, other) = (ProxyPseudonym::new(), ProxyPseudonym::new());
        let mut headers = HeaderMap::new();
        headers.append(header::VIA, HeaderValue::from_static("1.0 fred, 1.1 p.example.net (x)"));
        // Whoever wants a loop must not be able to hide it.
        headers.append(header::VIA, HeaderValue::from_bytes(b"1.1 caf\xe9").unwrap());
        one.add(Version::HTTP_3, &mut headers);
        assert!(one.is_in(&headers));
        assert!(!other.is_in(&headers));
        let text = headers.get_all(header::VIA).iter().next_back().unwrap().to_str().unwrap();
        assert!(text.starts_with("3 eyas-"), "{text}");
    }
}
