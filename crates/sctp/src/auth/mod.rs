//! Authenticated chunks: AUTH, its keys and its algorithms.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895>
//!
//! Each side says in its INIT or INIT ACK which chunks it wants to be authenticated, by which
//! algorithms, and gives random bytes. These and a key that both know beforehand (an empty one
//! without) make the key of the association. What follows an AUTH chunk in a packet is covered by
//! its HMAC.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `offer` | what a side says when the association begins | RFC 4895 §3 |
//! | `chunk_set` | which chunks must be authenticated | RFC 4895 §3.2 |
//! | `keys` | shared keys and the keys made of them | RFC 4895 §6.1 |
//! | `algorithm` | HMAC with SHA-1 and SHA-256 | RFC 4895 §3.3 |
//! | `authentication` | AUTH chunks signed and checked | RFC 4895 §6.2, §6.3 |

mod algorithm;
mod authentication;
mod chunk_set;
mod keys;
mod offer;
#[cfg(test)]
mod tests;

pub use algorithm::HmacAlgorithm;
pub use authentication::{Authentication, Verification};
pub use chunk_set::ChunkSet;
pub use keys::SharedKeys;
pub use offer::{AuthOffer, RANDOM_LEN};
