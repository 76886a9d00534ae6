//! Replaces names and addresses in texts, equal ones alike, so that a report can be published.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use super::findings::is_link_local;

/// Words with dots in our own texts, which tell nothing about anybody.
const OWN_WORDS: [&str; 4] = ["ipv4only.arpa", "resolv.conf", "nsswitch.conf", "net.mptcp.enabled"];

/// The names and addresses that were replaced so far.
#[derive(Debug, Default)]
pub(super) struct ReportMask {
    /// Names that do not look like one, such as that of a host of the local network.
    known_names: Vec<String>,
    names: BTreeMap<String, String>,
    addresses: BTreeMap<IpAddr, String>,
}

impl ReportMask {
    /// Creates a mask for texts with these names. Names with several labels need not be among them.
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let known_names = names.into_iter().map(|name| normalised(&name)).collect();
        Self { known_names, ..Self::default() }
    }

    /// Returns the text without names and addresses.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part_of_word) {
            let (before, from_word) = rest.split_at(start);
            let end = from_word.find(|c| !is_part_of_word(c)).unwrap_or(from_word.len());
            let (word, after) = from_word.split_at(end);
            masked.push_str(before);
            masked.push_str(&self.word(word));
            rest = after;
        }
        masked.push_str(rest);
        masked
    }

    /// Replaces names and addresses in all texts of a value.
    pub(super) fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(members) => members.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns a word, or what stands for it. A word is a name or an address, possibly with a port, a zone, or the
    /// punctuation of its sentence.
    fn word(&mut self, word: &str) -> String {
        let bare = word.trim_end_matches(['.', ':']);
        // An address may itself end with a colon.
        for end in (bare.len()..=word.len()).rev() {
            if let Some(address) = word.get(..end).and_then(address_of) {
                return format!("{}{}", self.address(address), &word[end..]);
            }
        }
        if let Some((before, port)) = bare.rsplit_once(':')
            && !port.is_empty()
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && let Some(host) = self.masked_host(before)
        {
            return format!("{host}:{port}{}", &word[bare.len()..]);
        }
        match self.masked_host(bare) {
            Some(host) => format!("{host}{}", &word[bare.len()..]),
            // Whatever else has colons may have a name between them.
            None if bare.contains(':') => {
                let parts = word
                    .split(':')
                    .map(|part| self.masked_host(part).unwrap_or_else(|| part.to_owned()));
                parts.collect::<Vec<_>>().join(":")
            }
            None => word.to_owned(),
        }
    }

    /// Returns what stands for a name or an address, if this is one.
    fn masked_host(&mut self, host: &str) -> Option<String> {
        if let Some(address) = address_of(host) {
            return Some(self.address(address));
        }
        let name = normalised(host);
        let is_known = self.known_names.iter().any(|known| {
            name.strip_suffix(known.as_str())
                .is_some_and(|rest| !known.is_empty() && (rest.is_empty() || rest.ends_with('.')))
        });
        if !is_known && (OWN_WORDS.contains(&name.as_str()) || !has_labels(&name)) {
            return None;
        }
        let number = self.names.len() + 1;
        Some(self.names.entry(name).or_insert_with(|| format!("name-{number}")).clone())
    }

    fn address(&mut self, address: IpAddr) -> String {
        let number = self.addresses.len() + 1;
        let new = || format!("{}-{number}", kind_of(address));
        self.addresses.entry(address).or_insert_with(new).clone()
    }
}

/// Returns whether a letter can be in a name or an address.
fn is_part_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | ':' | '-' | '_' | '%')
}

fn normalised(name: &str) -> String {
    name.trim_end_matches('.').to_lowercase()
}

/// Parses an address, with a zone or without. The punctuation after a zone is no part of it.
fn address_of(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((_, zone)) if zone.contains(':') || zone.ends_with('.') => None,
        Some((address, _)) => address.parse().ok(),
        None => text.parse().ok(),
    }
}

/// Returns whether this is a name with several labels, and no number with a fraction.
fn has_labels(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    labels.len() > 1
        && labels.iter().all(|label| !label.is_empty() && !label.contains(':'))
        && labels.last().is_some_and(|last| last.chars().any(char::is_alphabetic))
}

/// Returns what matters of an address: its family, and how far it reaches.
fn kind_of(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(v4) if v4.is_loopback() => "loopback-ipv4",
        IpAddr::V4(_) if is_link_local(address) => "link-local-ipv4",
        IpAddr::V4(v4) if v4.is_private() => "private-ipv4",
        IpAddr::V4(_) => "ipv4",
        IpAddr::V6(v6) if v6.is_loopback() => "loopback-ipv6",
        IpAddr::V6(_) if is_link_local(address) => "link-local-ipv6",
        IpAddr::V6(v6) if v6.is_unique_local() => "private-ipv6",
        IpAddr::V6(_) => "ipv6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_replaced_alike() {
        let mut mask = ReportMask::new(["Server".to_owned(), "localhost".to_owned()]);
        for (text, expected) in [
            ("TCP to 192.0.2.1:443 is ready", "TCP to ipv4-1:443 is ready"),
            ("192.0.2.1, then [2001:db8::1]:443.", "ipv4-1, then [ipv6-2]:443."),
            ("below 64:ff9b::/96", "below ipv6-3/96"),
            ("fe80::1%eth0: silent", "link-local-ipv6-4: silent"),
            ("2001:db8:::", "ipv6-5:"),
            ("10.0.0.1 in 3.5 ms", "private-ipv4-6 in 3.5 ms"),
            ("Example.ORG:8443 has none; example.org.", "name-1:8443 has none; name-1."),
            ("_8443._https.example.org", "name-2"),
            ("server is not localhost", "name-3 is not name-4"),
            ("a.server has ipv4only.arpa", "name-5 has ipv4only.arpa"),
            (
                "/etc/resolv.conf, sysctl net.mptcp.enabled=1",
                "/etc/resolv.conf, sysctl net.mptcp.enabled=1",
            ),
            ("1.5 s, 12 more; see RFC 7050.", "1.5 s, 12 more; see RFC 7050."),
            ("https://example.org:443/x", "https://name-1:443/x"),
            ("bücher.example", "name-6"),
            ("2001:DB8::1", "ipv6-2"),
        ] {
            assert_eq!(mask.text(text), expected);
        }
    }

    #[test]
    fn all_texts_of_a_value_are_replaced() {
        let mut mask = ReportMask::new([]);
        let mut value = serde_json::json!({
            "target": "a.test:443", "count": 3, "list": [{ "address": "[::1]:443" }, null, "a.test"],
        });
        mask.value(&mut value);
        let expected = serde_json::json!({
            "target": "name-1:443", "count": 3,
            "list": [{ "address": "[loopback-ipv6-1]:443" }, null, "name-1"],
        });
        assert_eq!(value, expected);
    }
}
