//! Tests of the site, and of its server with clients that request too much.

#[path = "../../../http/tests/serve/clients.rs"]
mod clients;
mod ends;
mod files;
mod hostile;
mod hostile_peers;
mod limits;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod routes;
mod sctp;
mod shutdown;

use eyas_http::serve::{Running, Server, ServerBuilder};
use eyas_testserver::site::Site;

/// Returns a builder for a server of the site.
fn builder() -> ServerBuilder {
    Server::builder().service(Site::new())
}

/// Starts a server of the site with the defaults.
async fn server() -> Running {
    clients::start(builder()).await
}
