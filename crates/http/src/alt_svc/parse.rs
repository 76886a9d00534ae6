//! Parses the `Alt-Svc` field value (RFC 7838 §3).

use std::time::Duration;

use eyas::race::target::parse_port;

use super::{AltSvc, Alternative, DEFAULT_MAX_AGE};

/// The maximum number of alternatives kept from one field; the rest is only checked for its syntax.
pub const MAX_ALTERNATIVES: usize = 16;

/// The longest field value that is parsed, in octets.
pub const MAX_FIELD_BYTES: usize = 8 * 1024;

/// The longest ALPN protocol name (RFC 7301 §3.1), in octets.
const MAX_PROTOCOL_BYTES: usize = 255;

/// The field value violates the grammar at this octet; the whole field is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The offset of the first invalid octet.
    pub at: usize,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed Alt-Svc field at octet {}", self.at)
    }
}

impl std::error::Error for Malformed {}

/// Parses a field value; several field lines must first be joined by commas (RFC 9110 §5.3).
///
/// A violation of the grammar rejects the whole value. An alternative that matches the grammar but
/// has an invalid value (port 0, an invalid host, an `ma` that is not a number) is skipped. `clear`
/// beside alternatives means `clear` (§3).
///
/// # Errors
/// [`Malformed`], with the offset of the error.
pub fn parse(field: &[u8]) -> Result<AltSvc, Malformed> {
    if field.len() > MAX_FIELD_BYTES {
        return Err(Malformed { at: MAX_FIELD_BYTES });
    }
    let mut reader = Reader { field, at: 0 };
    let mut clear = false;
    let mut elements = 0usize;
    let mut alternatives = Vec::new();
    loop {
        // Empty list elements are allowed (RFC 9110 §5.6.1.2).
        while reader.skip_space() == Some(b',') {
            reader.at += 1;
        }
        if reader.is_at_end() {
            break;
        }
        elements += 1;
        match reader.alt_value()? {
            Element::Clear => clear = true,
            Element::Unusable => {}
            Element::Alternative(alternative) => {
                if alternatives.len() < MAX_ALTERNATIVES {
                    alternatives.push(alternative);
                }
            }
        }
        match reader.skip_space() {
            None | Some(b',') => {}
            Some(_) => return Err(reader.malformed()),
        }
    }
    match (clear, elements) {
        (_, 0) => Err(reader.malformed()),
        (true, _) => Ok(AltSvc::Clear),
        (false, _) => Ok(AltSvc::Alternatives(alternatives)),
    }
}

/// One element of the list.
enum Element {
    Clear,
    Alternative(Alternative),
    /// Matches the grammar but cannot be connected to.
    Unusable,
}

struct Reader<'a> {
    field: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.field.get(self.at).copied()
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.field.len()
    }

    fn malformed(&self) -> Malformed {
        Malformed { at: self.at.min(self.field.len()) }
    }

    fn skip_space(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.peek()
    }

    fn expect(&mut self, octet: u8) -> Result<(), Malformed> {
        if self.peek() != Some(octet) {
            return Err(self.malformed());
        }
        self.at += 1;
        Ok(())
    }

    fn token(&mut self) -> Result<&'a [u8], Malformed> {
        let start = self.at;
        while self.peek().is_some_and(is_token) {
            self.at += 1;
        }
        if start == self.at { Err(self.malformed()) } else { Ok(&self.field[start..self.at]) }
    }

    /// Parses a `quoted-string` (RFC 9110 §5.6.4), unescaped.
    fn quoted(&mut self) -> Result<Vec<u8>, Malformed> {
        self.expect(b'"')?;
        let mut text = Vec::new();
        loop {
            let octet = self.peek().ok_or_else(|| self.malformed())?;
            match octet {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some(escaped) if is_text(escaped) => text.push(escaped),
                        _ => return Err(self.malformed()),
                    }
                }
                _ if is_text(octet) => text.push(octet),
                _ => return Err(self.malformed()),
            }
            self.at += 1;
        }
    }

    fn alt_value(&mut self) -> Result<Element, Malformed> {
        let start = self.at;
        let name = self.token()?;
        if self.peek() != Some(b'=') {
            if name != b"clear" {
                return Err(self.malformed());
            }
            return Ok(Element::Clear);
        }
        let protocol = percent_decode(name).ok_or(Malformed { at: start })?;
        self.at += 1;
        let authority = authority(&self.quoted()?);
        let (max_age, persist) = self.parameters()?;
        let (Some((host, port)), Some(max_age)) = (authority, max_age) else {
            return Ok(Element::Unusable);
        };
        if protocol.is_empty() || protocol.len() > MAX_PROTOCOL_BYTES {
            return Ok(Element::Unusable);
        }
        Ok(Element::Alternative(Alternative { protocol, host, port, max_age, persist }))
    }

    /// Parses the parameters after an alternative: `ma` (`None` if invalid) and `persist`. Unknown
    /// ones are ignored; of a repeated one the last counts. A semicolon that is not followed by
    /// anything is an omitted parameter, as everywhere else in HTTP (RFC 9110 §5.6.6); curl and
    /// Chromium do the same.
    fn parameters(&mut self) -> Result<(Option<Duration>, bool), Malformed> {
        let mut max_age = Some(DEFAULT_MAX_AGE);
        let mut persist = false;
        loop {
            let before = self.at;
            if self.skip_space() != Some(b';') {
                self.at = before;
                return Ok((max_age, persist));
            }
            self.at += 1;
            if matches!(self.skip_space(), None | Some(b',' | b';')) {
                continue;
            }
            let name = self.token()?;
            self.expect(b'=')?;
            let value = match self.peek() {
                Some(b'"') => self.quoted()?,
                _ => self.token()?.to_vec(),
            };
            if name.eq_ignore_ascii_case(b"ma") {
                max_age = seconds(&value);
            } else if name.eq_ignore_ascii_case(b"persist") {
                // Values other than 1 have no meaning (§3.1).
                persist = value == b"1";
            }
        }
    }
}

/// Parses `delta-seconds` (RFC 9111 §1.2.2): a number that is too large counts as the maximum.
fn seconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = value
        .iter()
        .fold(0u32, |sum, digit| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    Some(Duration::from_secs(u64::from(seconds)))
}

/// Parses `[ uri-host ] ":" port`; `None` if it is not valid.
fn authority(text: &[u8]) -> Option<(Option<String>, u16)> {
    let text = std::str::from_utf8(text).ok()?;
    let (host, port) = text.rsplit_once(':')?;
    let port = parse_port(port).filter(|port| *port != 0)?;
    if host.is_empty() {
        return Some((None, port));
    }
    let is_host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.len() <= 253 && host.bytes().all(is_host_octet),
    };
    is_host.then(|| (Some(host.to_ascii_lowercase()), port))
}

/// Decodes `token` octets: all except the percent sign represent themselves; `%XX` is one octet
/// (§3).
fn percent_decode(name: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(name.len());
    let mut octets = name.iter();
    while let Some(&octet) = octets.next() {
        if octet != b'%' {
            decoded.push(octet);
            continue;
        }
        let high = char::from(*octets.next()?).to_digit(16)?;
        let low = char::from(*octets.next()?).to_digit(16)?;
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(decoded)
}

fn is_token(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet)
}

fn is_text(octet: u8) -> bool {
    octet == b'\t' || (octet >= b' ' && octet != 0x7f)
}

/// Returns whether a registered name can contain the octet; IDNA names are A-labels here.
fn is_host_octet(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~".contains(&octet)
}
