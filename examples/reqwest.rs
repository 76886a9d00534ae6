//! reqwest over races: `cargo run -p eyas-examples --example reqwest -- https://example.org/`
//!
//! reqwest does not support custom transports, but it supports proxies: this one runs in the same process,
//! on loopback, and races each destination over TCP and MPTCP, which carry bytes unchanged. TLS stays
//! between reqwest and the server.

use std::error::Error;

use eyas::Endpoint;
use eyas_proxy::{Proxy, RunningProxy};
use reqwest::{Client, ClientBuilder};

/// Returns a client and its proxy; the client works as long as the proxy runs.
pub(crate) fn client(
    endpoint: Endpoint,
    builder: ClientBuilder,
) -> Result<(Client, RunningProxy), Box<dyn Error>> {
    let running = Proxy::builder(endpoint).start()?;
    let proxy = reqwest::Proxy::all(format!("http://{}", running.local_addr()))?;
    Ok((builder.proxy(proxy).build()?, running))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: reqwest URL")?;
    // reqwest is built here without its own cryptography provider.
    let _ = eyas::rustls::crypto::ring::default_provider().install_default();
    let (client, running) = client(Endpoint::builder().build()?, Client::builder())?;
    println!("{}", client.get(url).send().await?.text().await?);
    println!("{:?}", running.stats());
    running.shutdown().await;
    Ok(())
}
