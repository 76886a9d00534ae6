//! hyper-util's client over a race:
//! `cargo run -p eyas-examples --example hyper -- https://example.org/`

use std::error::Error;

use eyas::{ConnectionInfo, Endpoint};
use eyas_http::{Body, connector::Connector};
use http_body_util::BodyExt;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};

pub(crate) async fn get(endpoint: Endpoint, url: &str) -> Result<String, Box<dyn Error>> {
    // One client for all requests, which reuses its connections.
    let client = Client::builder(TokioExecutor::new()).build(Connector::new(endpoint));
    let request = axum::http::Request::get(url).body(Body::empty())?;
    let response = client.request(request).await?;
    let version = response.version();
    let info = response
        .extensions()
        .get::<ConnectionInfo>()
        .cloned()
        .ok_or("no connection information")?;
    let body = response.into_body().collect().await?.to_bytes();
    let summary = format!("{version:?} over {} to {}", info.transport, info.remote);
    Ok(format!(
        "{summary}, after {} that failed\n{}",
        info.failed.len(),
        String::from_utf8_lossy(&body)
    ))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: hyper URL")?;
    println!("{}", get(Endpoint::builder().build()?, &url).await?);
    Ok(())
}
