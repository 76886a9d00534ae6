//! The site, and what its server does for those who ask too much of it.

#[path = "../../../http/tests/serve/clients.rs"]
mod clients;
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

/// A server of the site.
fn builder() -> ServerBuilder {
    Server::builder().service(Site::new())
}

/// The same, as it is by default.
async fn server() -> Running {
    clients::start(builder()).await
}
