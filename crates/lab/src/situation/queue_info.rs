//! What the application asks of its streams before it hands something in.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Which stream the application leaves out, by what the association says of its queue
/// (draft-dreibholz-tsvwg-sctpsocket-sqinfo).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueInfo {
    /// None, it does not ask; the message that is next waits for room: `false`.
    #[default]
    None,
    /// One that holds its share of the send buffer, sent or not, as in the paper: `true`.
    Share,
    /// One of which a message is still unsent: `"unsent"`. What waits to be sent takes nothing of
    /// the buffer then that something under way could have.
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

    fn visit_bool<E: de::Error>(self, asks: bool) -> Result<QueueInfo, E> {
        Ok(if asks { QueueInfo::Share } else { QueueInfo::None })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueInfo, E> {
        match text {
            "unsent" => Ok(QueueInfo::Unsent),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}
