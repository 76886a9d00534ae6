//! WebRTC data channels over one association (RFC 8831), opened in-band by DCEP (RFC 8832) or by
//! prior agreement.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `channels` | the API | RFC 8831 §6.4, W3C WebRTC §6 |
//! | `settings` | configuration of all channels and of one | RFC 8831 §6.2, RFC 8841 §6 |
//! | `dcep` | encoding of DATA_CHANNEL_OPEN and DATA_CHANNEL_ACK | RFC 8832 §5 |
//! | `payload` | payload protocol identifiers, empty messages | RFC 8831 §6.6, §8 |
//! | `channel` | one channel | RFC 8831 §6.4 |
//! | `opening` | channels opened by the peer, and its acknowledgements | RFC 8832 §6 |
//! | `receiving` | incoming messages | RFC 8831 §6.6 |
//! | `assembly` | messages that arrive in parts | RFC 8831 §6.6 |
//! | `closing` | stream resets and reuse of identifiers | RFC 8831 §6.7, RFC 6525 |
//! | `notices` | events of the association | |
//! | `event`, `error`, `counters` | outputs to the caller | |
//!
//! [`DataChannels`] belongs to one association of an [`Endpoint`](crate::endpoint::Endpoint);
//! associations without channels have no overhead. The driver passes packets and time to the
//! endpoint as usual ([`crate::io`]), and calls [`DataChannels::poll_output`] in place of the
//! endpoint's own `poll_output`:
//!
//! ```
//! use core::time::Duration;
//! use eyas_sctp::config::{ConnectOptions, EndpointConfig};
//! use eyas_sctp::data_channel::{ChannelOptions, ChannelSettings, DataChannelOutput, DataChannels, DtlsRole, MessageKind};
//! use eyas_sctp::endpoint::Endpoint;
//!
//! let now = Duration::ZERO;
//! let settings = ChannelSettings::new(DtlsRole::Client);
//! let mut endpoint = Endpoint::new(EndpointConfig::default(), [7; 32], now);
//! let mut options = ConnectOptions::new("192.0.2.1:9".parse().unwrap(), 5000);
//! options.association = settings.association();
//! let association = endpoint.connect(now, &options).unwrap();
//!
//! let mut channels = DataChannels::new(&endpoint, association, settings);
//! let chat = channels.open(now, &mut endpoint, &ChannelOptions::new("chat")).unwrap();
//! channels.send(now, &mut endpoint, chat, MessageKind::Text, "hello".into()).unwrap();
//! while let DataChannelOutput::Endpoint(output) = channels.poll_output(now, &mut endpoint) {
//!     // Packets to send, until the endpoint returns its next timeout.
//!     # if matches!(output, eyas_sctp::io::Output::Timeout(_)) { break }
//! }
//! ```

mod assembly;
mod channel;
mod channels;
mod closing;
mod counters;
#[cfg(feature = "internals")]
pub mod dcep;
#[cfg(not(feature = "internals"))]
mod dcep;
mod error;
mod event;
mod notices;
mod opening;
mod payload;
mod receiving;
mod settings;

pub use channel::{ChannelState, DataChannel};
pub use channels::DataChannels;
pub use counters::ChannelCounters;
pub use error::ChannelError;
pub use event::{ChannelEvent, DataChannelOutput};
pub use payload::MessageKind;
#[cfg(feature = "internals")]
pub use payload::ppid;
pub use settings::{ChannelOptions, ChannelSettings, DtlsRole};
