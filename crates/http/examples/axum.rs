//! An axum application over HTTP/1.1, 2 and 3, MPTCP and SCTP, until it is interrupted.
//!
//! `cargo run -p eyas-http --example axum -- certificate.pem` writes its certificate there, for
//! `curl --cacert certificate.pem` and `eyas get --cacert certificate.pem --prefer sctp`.

use std::{error::Error, time::Duration};

use axum::{Extension, Router, body::Body, extract::Request, routing::get};
use eyas_http::Server;
use eyas_http::serve::{PeerInfo, SctpService};

async fn greet(Extension(peer): Extension<PeerInfo>, request: Request) -> String {
    format!("Hello {}, this is {:?} over {}.\n", peer.remote, request.version(), peer.transport)
}

/// Echoes the body as it arrives.
async fn echo(request: Request) -> Body {
    request.into_body()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = Router::new().route("/", get(greet)).route("/echo", get(greet).post(echo));
    let mut sctp = SctpService::default();
    sctp.optional = true;
    let server = Server::builder().listen_locally(0).mptcp(true).sctp(sctp).service(app);
    let running = server.start().await?;
    if let (Some(path), Some(identity)) = (std::env::args_os().nth(1), running.identity()) {
        std::fs::write(path, identity.certificate_pem()?)?;
    }
    println!("https://localhost:{}/", running.local_addr().port());
    tokio::signal::ctrl_c().await?;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
