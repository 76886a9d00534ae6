//! HTTP/3, with quinn and h3.

use std::net::SocketAddr;

use bytes::Bytes;
use h3::client::{RequestStream, SendRequest};
use http::Request;

use crate::Failure;

/// A connection: the sender for requests, and the QUIC connection, to close it.
pub struct Http3 {
    sender: SendRequest<h3_quinn::OpenStreams, Bytes>,
    connection: quinn::Connection,
}

pub type ResponseStream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

pub async fn http3(
    endpoint: &quinn::Endpoint,
    address: SocketAddr,
    host: &str,
) -> Result<Http3, Failure> {
    let connection = endpoint.connect(address, host)?.await?;
    let transport = h3_quinn::Connection::new(connection.clone());
    let (mut driver, sender) = h3::client::new(transport).await?;
    tokio::spawn(async move { driver.wait_idle().await });
    Ok(Http3 { sender, connection })
}

impl Http3 {
    /// Sends a request without a body and waits for the head of the response.
    pub async fn send(&mut self, request: Request<()>) -> Result<ResponseStream, Failure> {
        let mut stream = self.sender.send_request(request).await?;
        stream.finish().await?;
        let response = stream.recv_response().await?;
        if response.status() != http::StatusCode::OK {
            return Err(format!("the status is {}", response.status()).into());
        }
        Ok(stream)
    }

    pub fn close(self) {
        drop(self.sender);
        self.connection.close(0x100_u32.into(), b"");
    }
}

/// Reads the whole response.
pub async fn read(response: &mut ResponseStream) -> Result<(), Failure> {
    while response.recv_data().await?.is_some() {}
    Ok(())
}
