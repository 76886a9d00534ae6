//! h3 with h3-quinn.

use bytes::{Buf, Bytes};
use h3::client::SendRequest;

use crate::{Failure, Transfer, message};

pub struct Client(SendRequest<h3_quinn::OpenStreams, Bytes>);

impl Client {
    pub async fn new(quic: quinn::Connection) -> Result<Self, Failure> {
        let (mut driver, sender) = h3::client::new(h3_quinn::Connection::new(quic)).await?;
        tokio::spawn(async move { driver.wait_idle().await });
        Ok(Self(sender))
    }

    pub async fn exchange(&mut self, transfer: Transfer) -> Result<u64, Failure> {
        let mut stream = self.0.send_request(message::request(transfer)?).await?;
        if let Transfer::Up(bytes) = transfer {
            for piece in message::content(bytes) {
                stream.send_data(piece).await?;
            }
        }
        stream.finish().await?;
        let response = stream.recv_response().await?;
        if response.status() != http::StatusCode::OK {
            return Err(format!("the status is {}", response.status()).into());
        }
        let mut length = 0;
        while let Some(data) = stream.recv_data().await? {
            length += data.remaining() as u64;
        }
        Ok(length)
    }
}

pub async fn serve(quic: quinn::Connection) -> Result<(), Failure> {
    let quic = h3_quinn::Connection::new(quic);
    let mut connection = h3::server::Connection::<_, Bytes>::new(quic).await?;
    while let Some(resolver) = connection.accept().await? {
        tokio::spawn(async move {
            let (request, mut stream) = resolver.resolve_request().await?;
            let (response, length) = message::response(request.uri().path())?;
            while stream.recv_data().await?.is_some() {}
            stream.send_response(response).await?;
            for piece in message::content(length) {
                stream.send_data(piece).await?;
            }
            stream.finish().await?;
            Ok::<_, Failure>(())
        });
    }
    Ok(())
}
