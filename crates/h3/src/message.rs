//! Well-formed messages (RFC 9114 §4.1.2 to §4.5, §10.3; RFC 9113 §8 shares the rules), on decoded
//! fields: nothing here knows how they were sent.
//!
//! The checks take the fields as pairs of name and value in the order of the message, pseudo-header
//! fields first, and borrow from them.
//!
//! ```
//! use eyas_h3::message::{self, Content, MessageFault, PseudoField, RequestOptions};
//!
//! let fields: [(&[u8], &[u8]); 5] = [
//!     (b":method", b"POST"),
//!     (b":scheme", b"https"),
//!     (b":authority", b"example.com"),
//!     (b":path", b"/upload"),
//!     (b"content-length", b"42"),
//! ];
//! let head = message::check_request(fields, RequestOptions::default())?;
//! assert_eq!(head.path, Some(&b"/upload"[..]));
//! assert_eq!(head.content, Content::Length(42));
//!
//! let without_path = fields.into_iter().filter(|(name, _)| *name != b":path");
//! assert_eq!(
//!     message::check_request(without_path, RequestOptions::default()),
//!     Err(MessageFault::PseudoFieldMissing(PseudoField::Path)),
//! );
//! # Ok::<(), MessageFault>(())
//! ```

mod characters;
mod fault;
mod fields;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use characters::{is_field_name, is_field_value, is_token};
pub use fault::{MessageFault, PseudoField};
pub use request::{RequestHead, RequestOptions, check_request};
pub use response::{RequestMethod, ResponseHead, check_response};

use fields::FieldRules;

/// What follows the head of a message on its stream (RFC 9114 §4.1, §4.1.2, §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// The head was an interim response; another head follows (RFC 9110 §15.2).
    Interim,
    /// Content of any length, and perhaps trailers.
    Any,
    /// Content of exactly this many bytes, and perhaps trailers.
    Length(u64),
    /// No content, whatever Content-Length says: the response to a HEAD request, or one with status 204
    /// or 304 (RFC 9110 §6.4.1).
    Empty,
    /// Bytes of another protocol, in both directions and without trailers: a CONNECT request, and a
    /// response that accepts it.
    Tunnel,
}

/// Checks the fields of a trailer section (RFC 9114 §4.1, §4.3).
///
/// # Errors
/// The first rule that a field breaks; any pseudo-header field is one.
pub fn check_trailers<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), MessageFault> {
    let mut rules = FieldRules::default();
    for (name, value) in fields {
        if name.first() == Some(&b':') {
            return Err(MessageFault::PseudoFieldInTrailers);
        }
        rules.check(name, value)?;
    }
    Ok(())
}
