//! The two halves of a request's stream (RFC 9114 §4.1): a driver owns each where it reads or writes the
//! stream, without a lock, and content passes through without a copy.
//!
//! The halves know the order of frames, Content-Length and what a CONNECT request allows. Field
//! sections stay encoded here: the [connection](crate::connection) encodes and decodes them, and
//! [`message`](crate::message) checks them.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::{MAX_INTERIM_RESPONSES, Received, RequestReceiver};
pub use sender::RequestSender;
