//! The characters of names and values (RFC 9114 §10.3, RFC 9110 §5.1, §5.5, §5.6.2).

/// Returns whether this is a token (RFC 9110 §5.6.2), as methods are.
#[must_use]
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_character(byte))
}

/// Returns whether this is the name of a field as HTTP/3 sends it: a token in lower case.
#[must_use]
pub fn is_field_name(name: &[u8]) -> bool {
    is_token(name) && !name.iter().any(u8::is_ascii_uppercase)
}

/// Returns whether this is the value of a field (RFC 9110 §5.5): visible characters and bytes above
/// ASCII, with spaces and tabs between them. The empty value is one.
#[must_use]
pub fn is_field_value(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !is_space(value.first())
        && !is_space(value.last())
        && value.iter().all(|&byte| matches!(byte, b'\t' | b' '..=0x7e | 0x80..))
}

const fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Returns whether this is a scheme (RFC 3986 §3.1).
pub(super) fn is_scheme(scheme: &[u8]) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_inner)
}

/// Returns whether all characters are visible ones or above ASCII: no URI has others, and a space in
/// one would end the request target of HTTP/1.1.
pub(super) fn is_visible(text: &[u8]) -> bool {
    text.iter().all(|&byte| matches!(byte, b'!'..=0x7e | 0x80..))
}
