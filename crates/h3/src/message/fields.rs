//! Rules that each field of a message follows (RFC 9114 §4.2), and those about several lines of one
//! field.

use super::characters::{is_field_value, is_token};
use super::fault::MessageFault;

/// What is known of the fields so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldRules {
    /// Content-Length, if it has been there.
    pub(super) content_length: Option<u64>,
}

impl FieldRules {
    /// Checks a field that is not a pseudo-header field.
    pub(super) fn check(&mut self, name: &[u8], value: &[u8]) -> Result<(), MessageFault> {
        if name.iter().any(u8::is_ascii_uppercase) {
            return Err(MessageFault::NameInUpperCase);
        }
        if !is_token(name) {
            return Err(MessageFault::NameInvalid);
        }
        if !is_field_value(value) {
            return Err(MessageFault::ValueInvalid);
        }
        match name {
            // "An endpoint MUST NOT generate an HTTP/3 field section containing connection-specific
            // fields" (RFC 9114 §4.2); RFC 9110 §7.6.1 lists them.
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Err(MessageFault::ConnectionSpecificField),
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => {
                Err(MessageFault::TransferCodingRequested)
            }
            b"content-length" => self.check_content_length(value),
            _ => Ok(()),
        }
    }

    /// Checks a line of Content-Length. A list of equal values counts as one of them (RFC 9110 §8.6).
    fn check_content_length(&mut self, value: &[u8]) -> Result<(), MessageFault> {
        for number in value.split(|&byte| byte == b',') {
            let length = parse_decimal(number.trim_ascii());
            let length = length.ok_or(MessageFault::ContentLengthInvalid)?;
            if *self.content_length.get_or_insert(length) != length {
                return Err(MessageFault::ContentLengthInvalid);
            }
        }
        Ok(())
    }
}

/// Returns the number that these digits are, without a sign.
fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(digits).ok()?.parse().ok()
}
