//! reqwest over races: `cargo run -p eyas-examples --example reqwest -- https://example.org/`
//!
//! reqwest takes no transport of others, but it takes a proxy: this one is in the same process, on
//! loopback, and races each destination over what carries bytes as they are, TCP and MPTCP. TLS stays
//! between reqwest and the server.

use std::error::Error;

use eyas::Endpoint;
use eyas_relay::{Proxy, Running};
use reqwest::{Client, ClientBuilder};

/// The client lasts as long as the proxy runs.
pub(crate) fn client(
    endpoint: Endpoint,
    builder: ClientBuilder,
) -> Result<(Client, Running), Box<dyn Error>> {
    let running = Proxy::builder(endpoint).start()?;
    let proxy = reqwest::Proxy::all(format!("http://{}", running.local_addr()))?;
    Ok((builder.proxy(proxy).build()?, running))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("which URL?")?;
    // reqwest is built without a provider of its own here.
    let _ = eyas::rustls::crypto::ring::default_provider().install_default();
    let (client, running) = client(Endpoint::builder().build()?, Client::builder())?;
    println!("{}", client.get(url).send().await?.text().await?);
    println!("{:?}", running.stats());
    running.shutdown().await;
    Ok(())
}
