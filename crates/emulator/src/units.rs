//! Amounts and properties of links, as written in plans and on the command line.
//!
//! | file | purpose |
//! | --- | --- |
//! | `quantity` | amounts with units |
//! | `queue` | the queue before a link |
//! | `loss` | the random losses of a link |
//! | `jitter` | the random part of its delay |
//! | `reordering` | whether packets overtake each other |
//! | `recording` | a recorded rate |
//! | `link` | some properties of a link, as text or table |
//! | `middlebox` | a middlebox, as a table |

/// Serialises a type as the text that it is displayed as, and parses it again.
macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

mod jitter;
mod link;
mod loss;
mod middlebox;
mod quantity;
mod queue;
mod recording;
mod reordering;
mod wording;

pub use jitter::{JitterSpec, ParseJitterError};
pub use link::{LinkRate, LinkSpec, LinkSpecError};
pub use loss::LossSpec;
pub use middlebox::{MiddleboxSpec, MiddleboxSpecError, ProtocolName};
pub use quantity::parse as parse_amount;
pub use quantity::{AmountKind, BitRate, ByteSize, ParseAmountError, PercentValue, TimeSpan};
pub use queue::{FramingSize, ParseQueueError, QueueSpec};
pub use recording::{RateRecording, ReadRecordingError};
pub use reordering::{ParseReorderError, ReorderSpec};
pub use wording::in_words_of_the_file;
