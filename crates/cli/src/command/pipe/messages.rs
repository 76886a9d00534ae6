//! Lines as SCTP messages, and messages as lines.

use bytes::Bytes;
use eyas_sctp_tokio::protocol::event::Event;
use eyas_sctp_tokio::protocol::identifier::{Ppid, StreamId};
use eyas_sctp_tokio::protocol::message::{MessageReliability, SendInfo};
use eyas_sctp_tokio::{SctpAssociation, SctpError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::TransferredBytes;
use crate::command::paths::PathReporter;
use crate::failure::{Failure, FailureKind};
use crate::flags::MessageFlags;

/// Transfers messages until both sides are done. When standard input ends, so does the stream, or
/// the association if the peer cannot end a single stream.
pub(super) async fn exchange(
    association: &SctpAssociation,
    flags: &MessageFlags,
    reporter: &PathReporter,
) -> Result<TransferredBytes, Failure> {
    let receiving = receive(association, reporter);
    let (sent, received) = tokio::try_join!(send(association, flags), receiving)?;
    Ok(TransferredBytes { sent, received, ..TransferredBytes::default() })
}

async fn send(association: &SctpAssociation, flags: &MessageFlags) -> Result<u64, Failure> {
    let info = SendInfo {
        stream: StreamId(flags.stream),
        ppid: Ppid(flags.ppid),
        unordered: flags.unordered,
        reliability: flags
            .lifetime
            .map_or(MessageReliability::Reliable, MessageReliability::Lifetime),
        ..SendInfo::default()
    };
    let mut lines = BufReader::new(tokio::io::stdin());
    let mut sent = 0;
    loop {
        let mut line = Vec::new();
        let length = lines
            .read_until(b'\n', &mut line)
            .await
            .map_err(|cause| Failure::read("standard input", &cause))?;
        if length == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        // SCTP has no empty messages (RFC 9260 §3.3.1).
        if line.is_empty() {
            continue;
        }
        sent += line.len() as u64;
        match association.send(&info, Bytes::from(line)).await {
            Ok(()) => {}
            Err(SctpError::Closed) => return Ok(sent),
            Err(error) => return Err(lost(&error)),
        }
    }
    match association.end_stream(info.stream).await {
        // The stream or the association has already ended.
        Ok(()) | Err(SctpError::Closed | SctpError::Misuse(_)) => Ok(sent),
        Err(error) => Err(lost(&error)),
    }
}

/// Receives until the peer ends one of its streams, or the association.
async fn receive(association: &SctpAssociation, reporter: &PathReporter) -> Result<u64, Failure> {
    let mut out = tokio::io::stdout();
    let mut received = 0;
    let mut peer_is_done = false;
    loop {
        let next = tokio::select! {
            biased;
            next = association.receive() => next,
            // Everything that the peer sent before has been received above.
            () = std::future::ready(()), if peer_is_done => return Ok(received),
            event = association.event() => {
                event.iter().for_each(|event| reporter.report(association, event));
                peer_is_done |= matches!(event, None | Some(Event::StreamsReset { outgoing: false, .. }));
                continue;
            }
        };
        let message = match next {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(received),
            Err(error) => return Err(lost(&error)),
        };
        received += message.len() as u64;
        let write = async {
            for piece in message.data.iter() {
                out.write_all(piece).await?;
            }
            if message.ends {
                out.write_all(b"\n").await?;
            }
            out.flush().await
        };
        write.await.map_err(|cause| Failure::write("standard output", &cause))?;
    }
}

fn lost(error: &SctpError) -> Failure {
    Failure::new(FailureKind::Protocol, error.to_string())
}
