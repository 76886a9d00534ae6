//! QUIC alone: a path and a byte of zero instead of a head, and no heads in responses.

use bytes::Bytes;

use crate::{Failure, Transfer, message};

pub struct Client(quinn::Connection);

impl Client {
    pub fn new(quic: quinn::Connection) -> Self {
        Self(quic)
    }

    pub async fn exchange(&mut self, transfer: Transfer) -> Result<u64, Failure> {
        let (mut send, mut recv) = self.0.open_bi().await?;
        let (path, upload) = match transfer {
            Transfer::Small => ("/\0".to_owned(), 0),
            Transfer::Down(bytes) => (format!("/down/{bytes}\0"), 0),
            Transfer::Up(bytes) => ("/up\0".to_owned(), bytes),
        };
        send.write_chunk(path.into()).await?;
        for piece in message::content(upload) {
            send.write_chunk(piece).await?;
        }
        send.finish()?;
        length(&mut recv).await
    }
}

/// Reads a stream to its end.
async fn length(recv: &mut quinn::RecvStream) -> Result<u64, Failure> {
    let (mut length, mut chunks) = (0, [const { Bytes::new() }; 64]);
    while let Some(count) = recv.read_chunks(&mut chunks).await? {
        length += chunks[..count].iter().map(|chunk| chunk.len() as u64).sum::<u64>();
    }
    Ok(length)
}

pub async fn serve(quic: quinn::Connection) -> Result<(), Failure> {
    loop {
        let (mut send, mut recv) = quic.accept_bi().await?;
        tokio::spawn(async move {
            let first = recv.read_chunk(usize::MAX, true).await?;
            let first = first.map_or_else(Bytes::new, |chunk| chunk.bytes);
            let path = first.split(|octet| *octet == 0).next().unwrap_or_default();
            let (_, bytes) = message::response(std::str::from_utf8(path)?)?;
            length(&mut recv).await?;
            for piece in message::content(bytes) {
                send.write_chunk(piece).await?;
            }
            send.finish()?;
            Ok::<_, Failure>(())
        });
    }
}
