//! The queue information that the application uses before it sends.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Which streams the application skips, according to the association's queue information
/// (draft-dreibholz-tsvwg-sctpsocket-sqinfo).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueInfo {
    /// None, because it does not use the information; the next message waits for room: `false`.
    #[default]
    None,
    /// Streams that hold their share of the send buffer, sent or not, as in the paper: `true`.
    Share,
    /// Streams with an unsent message: `"unsent"`. Unsent data then does not occupy buffer space
    /// that data in flight could use.
    Unsent,
}

impl Serialize for QueueInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_bool(false),
            Self::Share => serializer.serialize_bool(true),
            Self::Unsent => serializer.serialize_str("unsent"),
        }
    }
}

impl<'de> Deserialize<'de> for QueueInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QueueInfoVisitor)
    }
}

struct QueueInfoVisitor;

impl de::Visitor<'_> for QueueInfoVisitor {
    type Value = QueueInfo;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("false, true or \"unsent\"")
    }

    fn visit_bool<E: de::Error>(self, uses: bool) -> Result<QueueInfo, E> {
        Ok(if uses { QueueInfo::Share } else { QueueInfo::None })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueInfo, E> {
        match text {
            "unsent" => Ok(QueueInfo::Unsent),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}
