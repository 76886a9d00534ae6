//! Authenticated chunks: AUTH, its keys and its algorithms.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895>
//!
//! In its INIT or INIT ACK, each side lists the chunks that it requires to be authenticated and its
//! supported algorithms, and includes random bytes. These and a preshared key (an empty one if
//! there is none) form the association key. An HMAC covers everything that follows an AUTH chunk in
//! a packet.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `offer` | what a side offers in the handshake | RFC 4895 §3 |
//! | `chunk_set` | the set of chunks that must be authenticated | RFC 4895 §3.2 |
//! | `keys` | shared keys and the keys derived from them | RFC 4895 §6.1 |
//! | `algorithm` | HMAC with SHA-1 and SHA-256 | RFC 4895 §3.3 |
//! | `authentication` | signing and verification of AUTH chunks | RFC 4895 §6.2, §6.3 |

mod algorithm;
mod authentication;
mod chunk_set;
mod keys;
mod offer;
#[cfg(test)]
mod tests;

pub use algorithm::HmacAlgorithm;
pub use authentication::{AssociationAuthentication, AuthVerification};
pub use chunk_set::ChunkSet;
pub use keys::SharedKeys;
pub use offer::{AuthOffer, RANDOM_LEN};
