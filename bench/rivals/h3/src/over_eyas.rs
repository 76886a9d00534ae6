//! eyas-h3 with the driver of eyas-http.

use std::future::poll_fn;

use eyas_h3::message::RequestMethod;

use crate::http3::{
    ClientConnection, ConnectionOptions, Receiving, RequestStream, ServerConnection,
    response_content,
};
use crate::{Failure, Transfer, message};

const OPTIONS: ConnectionOptions = ConnectionOptions {
    head_bytes: 64 * 1024,
    extended_connect: false,
    datagrams: false,
    remembered: None,
};

pub struct Client(ClientConnection<quinn::Connection>);

impl Client {
    pub fn new(quic: quinn::Connection) -> Self {
        let (client, streams) = ClientConnection::start(quic, OPTIONS);
        tokio::spawn(streams.run());
        Self(client)
    }

    pub async fn exchange(&mut self, transfer: Transfer) -> Result<u64, Failure> {
        let (mut send, mut recv) = self.0.open().await?;
        let head = message::request(transfer)?;
        send.send_request(&head).await?;
        if let Transfer::Up(bytes) = transfer {
            for piece in message::content(bytes) {
                send.send_data(piece).await?;
            }
        }
        send.finish().await?;
        let method = RequestMethod::from_name(head.method().as_str().as_bytes());
        let response = recv.response(method).await?;
        if response.status() != http::StatusCode::OK {
            return Err(format!("the status is {}", response.status()).into());
        }
        length(&mut recv).await
    }
}

/// Reads a content to its end.
async fn length(recv: &mut Receiving<quinn::Connection>) -> Result<u64, Failure> {
    let mut length = 0;
    while let Some(frame) = poll_fn(|cx| recv.poll_frame(cx)).await {
        length += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(length)
}

pub async fn serve(quic: quinn::Connection) -> Result<(), Failure> {
    let (server, streams) = ServerConnection::start(quic, OPTIONS);
    tokio::spawn(streams.run());
    loop {
        let RequestStream { mut send, mut recv } = server.accept().await?;
        tokio::spawn(async move {
            let request = recv.request().await?;
            let (response, bytes) = message::response(request.uri().path())?;
            length(&mut recv).await?;
            send.send_response(&response, response_content(&response, request.method())).await?;
            for piece in message::content(bytes) {
                send.send_data(piece).await?;
            }
            send.finish().await?;
            Ok::<_, Failure>(())
        });
    }
}
