//! A gRPC call over a race, here to the health service that many servers provide:
//! `cargo run -p eyas-examples --example tonic -- https://grpc.example.org/`

use std::error::Error;

use eyas::Endpoint;
use eyas_http::{Versions, connector::Connector};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

pub(crate) async fn health(endpoint: Endpoint, url: &str) -> Result<ServingStatus, Box<dyn Error>> {
    // For tonic without its TLS features; with them, use an `http` URL and `always_tls()`.
    let connector = Connector::new(endpoint).versions(Versions::HTTP_2);
    let server = tonic::transport::Endpoint::from_shared(url.to_owned())?;
    let channel = server.connect_with_connector(connector).await?;
    let request = HealthCheckRequest::default();
    Ok(HealthClient::new(channel).check(request).await?.into_inner().status())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: tonic URL")?;
    println!("{:?}", health(Endpoint::builder().build()?, &url).await?);
    Ok(())
}
