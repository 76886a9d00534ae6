//! An interception proxy (RFC 9110 §3.7): all connections of programs in a network namespace go
//! through the proxy, and every DNS query is answered with addresses that represent names.
//!
//! | module or type | purpose | source |
//! | --- | --- | --- |
//! | `FlowTranslator` | redirects connections to a listener, and tells programs why one failed; pure | RFC 3022, RFC 9293, RFC 792, RFC 4443 |
//! | `RepresentedNames` | which name an address represents; pure | |
//! | `dns` | queries and answers; pure | RFC 1035 |
//! | [`HOST`], [`PEER`] | the addresses inside | RFC 2544, RFC 4193 |
//! | [`RunningProxy::intercept`](crate::RunningProxy::intercept) | a device, listeners, races | |
//! | [`RunningProxy::open_host_ports`](crate::RunningProxy::open_host_ports) | services of this host | |

mod addresses;
pub mod dns;
pub(crate) mod host_ports;
mod names;
mod serve;
mod translator;
#[cfg(test)]
mod translator_tests;

pub use addresses::{HOST, PEER};
#[cfg(feature = "internals")]
pub use names::RepresentedNames;
pub(crate) use serve::start;
#[cfg(feature = "internals")]
pub use translator::{FlowDenial, FlowTranslator, ProgramFlow, TranslatorOutput};
