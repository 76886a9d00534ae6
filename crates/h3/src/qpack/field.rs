//! Field lines (RFC 9110 §5), as they are given to an encoder and returned by a decoder.

use bytes::Bytes;

/// A decoded field line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldLine {
    /// The name. Whether it is a valid one, in lower case, is not checked.
    pub name: Bytes,
    /// The value. Whether it is a valid one is not checked.
    pub value: Bytes,
    /// Whether it was sent as a literal that must not be indexed. An intermediary has to forward it
    /// as [`Sensitivity::Sensitive`] (RFC 9204 §7.1.3).
    pub sensitive: bool,
}

impl FieldLine {
    /// Returns what [`Encoder::encode`](super::Encoder::encode) takes.
    #[must_use]
    pub fn as_parts(&self) -> (&[u8], &[u8], Sensitivity) {
        (&self.name, &self.value, self.sensitive.into())
    }
}

/// Whether the value of a field is a secret that could be guessed (RFC 9204 §7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sensitivity {
    /// It may be in the dynamic table.
    #[default]
    Ordinary,
    /// It is always sent as a literal, on every hop ("never-indexed", RFC 9204 §7.1.3).
    Sensitive,
}

impl From<bool> for Sensitivity {
    /// Makes a field of which this is true sensitive.
    fn from(sensitive: bool) -> Self {
        if sensitive { Self::Sensitive } else { Self::Ordinary }
    }
}
