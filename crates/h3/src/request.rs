//! The two halves of a request's stream (RFC 9114 §4.1): a driver owns each where it reads or writes the
//! stream, without a lock, and content passes through without a copy.
//!
//! The halves know the order of frames, Content-Length and what a CONNECT request allows. Field
//! sections stay encoded here: the [connection](crate::connection) encodes and decodes them, and
//! [`message`](crate::message) checks them.
//!
//! A server that answers one request:
//!
//! ```
//! use core::time::Duration;
//!
//! use bytes::Bytes;
//! use eyas_h3::connection::{Connection, ConnectionConfig, ConnectionSetup, Section};
//! use eyas_h3::message::{self, Content, RequestMethod, RequestOptions};
//! use eyas_h3::qpack::Sensitivity;
//! use eyas_h3::request::{Received, RequestReceiver, RequestSender};
//! use eyas_h3::{Fault, Role, StreamId};
//!
//! /// Returns what to send on a request's stream for what has arrived on it: all of it, here.
//! fn respond(
//!     connection: &mut Connection,
//!     now: Duration,
//!     stream: StreamId,
//!     arrived: Bytes,
//! ) -> Result<Vec<u8>, Fault> {
//!     connection.accept_request(stream)?;
//!     let mut receiver = RequestReceiver::new(Role::Server, 64 * 1024);
//!     receiver.handle_input(arrived, true);
//!     let mut method = RequestMethod::Other;
//!     while let Some(received) = receiver.poll_output() {
//!         match received {
//!             Received::Head(section) => {
//!                 // `Blocked` would wait for `Event::Section`.
//!                 let Section::Ready(fields) = connection.decode_section(now, stream, section)?
//!                 else {
//!                     return Ok(Vec::new());
//!                 };
//!                 let pairs = fields.iter().map(|line| (&line.name[..], &line.value[..]));
//!                 let head = message::check_request(pairs, RequestOptions::default())?;
//!                 method = RequestMethod::from_name(head.method);
//!                 receiver.accept_head(head.content);
//!             }
//!             Received::Data(_) => {}
//!             Received::Trailers(_) => receiver.accept_trailers(),
//!             Received::End => {}
//!             Received::Failed(fault) => return Err(fault),
//!         }
//!     }
//!     let fields = [(&b":status"[..], &b"200"[..]), (b"content-length", b"2")];
//!     let content = message::check_response(fields, method)?.content;
//!     assert_eq!(content, Content::Length(2));
//!     let lines = fields.into_iter().map(|(name, value)| (name, value, Sensitivity::Ordinary));
//!     let section = connection.encode_section(stream, lines).unwrap_or_default();
//!     let mut sender = RequestSender::default();
//!     let mut out = Vec::new();
//!     out.extend(sender.head(&section, content).unwrap_or_default());
//!     if let Ok(header) = sender.data(2) {
//!         out.extend_from_slice(header.as_ref());
//!         out.extend_from_slice(b"ok");
//!     }
//!     Ok(out)
//! }
//!
//! let now = Duration::ZERO;
//! let setup = ConnectionSetup {
//!     role: Role::Server,
//!     config: ConnectionConfig::default(),
//!     seed: 1,
//!     remembered: None,
//! };
//! let mut connection = Connection::new(setup, now);
//! // GET https://example.com/ with entries of the static table and a literal authority.
//! let request = Bytes::from_static(b"\x01\x12\0\0\xd1\xd7\x50\x0bexample.com\xc1");
//! let response = respond(&mut connection, now, StreamId(0), request)?;
//! assert!(response.starts_with(b"\x01") && response.ends_with(b"\x00\x02ok"));
//! // `poll_output` says what to send on the control and QPACK streams, until `Output::Timeout`.
//! # Ok::<(), Fault>(())
//! ```

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::{MAX_INTERIM_RESPONSES, Received, RequestReceiver};
pub use sender::RequestSender;
