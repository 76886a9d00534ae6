//! Upgrades to other protocols than WebSocket, which an operator allows by name.

use http::{HeaderMap, HeaderValue, Version, header, request};

use crate::fields;

/// The protocols that pass beside WebSocket.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpgradeProtocols(Vec<String>);

impl UpgradeProtocols {
    pub(crate) fn allow(&mut self, protocol: String) {
        self.0.push(protocol);
    }

    /// Returns whether a protocol may pass. Never `h2c` and other versions of HTTP: their requests
    /// would bypass all checks.
    fn allow_name(&self, name: &str) -> bool {
        let bare = name.split('/').next().unwrap_or_default();
        let is_http = ["h2c", "http", "tls"].iter().any(|known| bare.eq_ignore_ascii_case(known));
        !is_http && self.0.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(name))
    }

    /// Returns the `Upgrade` of an HTTP/1.1 request as it is forwarded: the protocols that may pass.
    pub(crate) fn requested(&self, head: &request::Parts) -> Option<HeaderValue> {
        let is_upgrade = head.version == Version::HTTP_11
            && fields::list_contains(&head.headers, &header::CONNECTION, "upgrade");
        if self.0.is_empty() || !is_upgrade {
            return None;
        }
        let names = fields::list_elements(&head.headers, &header::UPGRADE);
        let allowed: Vec<&str> = names.filter(|name| self.allow_name(name)).collect();
        (!allowed.is_empty()).then(|| HeaderValue::try_from(allowed.join(", ")).ok()).flatten()
    }
}

/// Adds the fields that request these protocols.
pub(crate) fn request(headers: &mut HeaderMap, protocols: &HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, protocols.clone());
}

/// Returns the protocol that a response with 101 switches to, if it was requested (RFC 9110 §7.8).
pub(crate) fn accepted(requested: &HeaderValue, headers: &HeaderMap) -> Option<HeaderValue> {
    let requested = requested.to_str().ok()?;
    let mut protocols = fields::list_elements(headers, &header::UPGRADE);
    let (protocol, another) = (protocols.next()?, protocols.next());
    let is_requested = requested.split(", ").any(|one| one.eq_ignore_ascii_case(protocol));
    (is_requested && another.is_none()).then(|| HeaderValue::try_from(protocol).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn requested(allowed: &[&str], connection: &str, upgrade: &str) -> Option<String> {
        let protocols = UpgradeProtocols(allowed.iter().map(|&name| name.to_owned()).collect());
        let request = Request::post("/").header("connection", connection);
        let request = request.header("upgrade", upgrade).body(()).expect("a request");
        let value = protocols.requested(&request.into_parts().0)?;
        Some(value.to_str().expect("text").to_owned())
    }

    #[test]
    fn only_allowed_protocols_pass() {
        let tailscale = "tailscale-control-protocol";
        for (allowed, connection, upgrade, forwarded) in [
            (&[][..], "upgrade", "tcp", None),
            (&["tcp"], "Upgrade", "tcp", Some("tcp")),
            (&["tcp"], "keep-alive, upgrade", "TCP", Some("TCP")),
            (&["tcp"], "close", "tcp", None),
            (&["tcp"], "upgrade", tailscale, None),
            (&["tcp"], "upgrade", "h2c, tcp", Some("tcp")),
            (&["*"], "upgrade", tailscale, Some(tailscale)),
            (&["*"], "upgrade", "a/1, b", Some("a/1, b")),
            (&["*", "h2c"], "upgrade", "h2c", None),
            (&["*"], "upgrade", "HTTP/2.0", None),
            (&["*"], "upgrade", "TLS/1.0", None),
            (&["*"], "upgrade", "", None),
        ] {
            assert_eq!(
                requested(allowed, connection, upgrade).as_deref(),
                forwarded,
                "{allowed:?} {upgrade}"
            );
        }
    }

    #[test]
    fn a_protocol_that_was_not_requested_is_not_accepted() {
        let answer = |upgrade: &'static str| {
            let requested = HeaderValue::from_static("tcp, x/1");
            let headers =
                HeaderMap::from_iter([(header::UPGRADE, HeaderValue::from_static(upgrade))]);
            accepted(&requested, &headers).is_some()
        };
        assert!(answer("tcp") && answer("TCP") && answer("x/1"));
        assert!(!answer("x") && !answer("tcp, x/1") && !answer("") && !answer("websocket"));
    }
}
