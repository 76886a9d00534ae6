//! A gateway (RFC 9110 §3.7): a service that forwards each request over HTTP/1.1 to an upstream, a web
//! server that need not know of it.
//!
//! | module or type | job | source |
//! | --- | --- | --- |
//! | [`Gateway`], [`GatewayBuilder`] | the service, and its configuration | |
//! | [`Upstream`] | where the upstream is | RFC 3986, RFC 9110 §4.2 |
//! | `ask` | which requests are refused before the upstream sees them | RFC 9110, RFC 9112 §11, RFC 9113 §8.2, §8.3 |
//! | `fields` | which fields are forwarded, and which are not | RFC 9110 §7.6.1 |
//! | `forwarded` | the client's address, and the host that it asked for | RFC 7239 |
//! | `via` | whether a request has been here before | RFC 9110 §7.6.3 |
//! | `head` | the head of the request that the upstream gets | RFC 9112 §3.2.1 |
//! | `request_body`, `response_body` | bytes and trailers in both directions, held to the announced length | RFC 9112 §6 |
//! | `expect` | who may send a body | RFC 9110 §10.1.1 |
//! | `dial`, `pool` | connections to the upstream, new and kept ones | RFC 9112 §9 |
//! | `forward` | from a request to its response; retries where they are safe | RFC 9110 §9.2.2 |
//! | `websocket`, `tunnel` | WebSockets and other upgraded connections | RFC 6455, RFC 8441 |
//! | `proxy_protocol` | the client's address in front of a connection | PROXY protocol 2 |
//! | `failure`, `notices` | why there was no response: for the client, and for the operator | RFC 9110 §15.6 |
//!
//! ```no_run
//! use eyas_http::Server;
//! use eyas_relay::gateway::Gateway;
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder("http://127.0.0.1:3000".parse()?).build()?;
//! let running = Server::builder().names(["example.org"]).service(gateway).start().await?;
//! println!("https://localhost:{}/", running.local_addr().port());
//! # Ok(())
//! # }
//! ```

mod ask;
mod builder;
mod dial;
mod expect;
mod failure;
mod fields;
mod forward;
mod forwarded;
mod head;
mod limits;
mod notices;
mod peer;
mod pool;
mod proxy_protocol;
mod request_body;
mod response_body;
mod service;
mod shared;
mod stats;
mod tunnel;
mod upstream;
mod via;
mod websocket;

pub use builder::{GatewayBuilder, GatewayError};
pub use forwarded::{Network, NetworkError};
pub use limits::Limits;
pub use response_body::{ResponseBody, ResponseBodyError};
pub use service::Gateway;
pub use stats::Stats;
pub use upstream::{Upstream, UpstreamError};
