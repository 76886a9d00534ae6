//! Requests over HTTP/3 whose fields refer to QPACK's dynamic table (RFC 9204 §3.2), because the server allows one.

use eyas_h3::qpack::{Decoded, Decoder, DecoderSetup};
use tokio::sync::mpsc::unbounded_channel;

use crate::{
    hostile_peer::Peer,
    site::SOON,
    wire::{CONTROL, DATA, DECODER, ENCODER, Ending, frame, head, send_uni, settings, varint},
};

const CAPACITY: u64 = 4096;

/// The most requests until an entry is used: the settings, and then the entry's acknowledgment, have to arrive.
const REQUESTS: usize = 20;

/// Reads the HEADERS of a request, whose frame is shorter than 64 bytes or 16 KiB, and returns its field section.
async fn section(recv: &mut quinn::RecvStream) -> Option<Vec<u8>> {
    let request = recv.read_to_end(1 << 16).await.ok()?;
    let (&first, _) = request[1..].split_first()?;
    let at = if first < 0x40 { 2 } else { 3 };
    Some(request[at..].to_vec())
}

#[tokio::test]
async fn a_field_that_is_repeated_is_sent_once() {
    let (report, mut sizes) = unbounded_channel();
    let peer = Peer::start(move |quic| {
        let report = report.clone();
        async move {
            let own = [varint(CONTROL), settings(&[(0x01, CAPACITY)])].concat();
            let _control = send_uni(&quic, &own, Ending::Open).await;
            let mut decoder_stream = send_uni(&quic, &varint(DECODER), Ending::Open).await;
            let setup = DecoderSetup {
                max_capacity: CAPACITY,
                max_blocked_streams: 0,
                max_section_size: 1 << 16,
            };
            let mut decoder = Decoder::new(setup);
            // The others must not be stopped.
            let mut others = Vec::new();
            let mut encoder_stream = loop {
                let Ok(mut uni) = quic.accept_uni().await else { return };
                let mut kind = [0];
                if uni.read_exact(&mut kind).await.is_ok() && u64::from(kind[0]) == ENCODER {
                    break uni;
                }
                others.push(uni);
            };
            loop {
                tokio::select! {
                    Ok(Some(chunk)) = encoder_stream.read_chunk(4096, true) => {
                        decoder.handle_encoder_stream(&chunk.bytes).expect("valid instructions");
                    }
                    Ok((mut send, mut recv)) = quic.accept_bi() => {
                        let Some(section) = section(&mut recv).await else { return };
                        let (size, stream) = (section.len(), recv.id().index() * 4);
                        let decoded = decoder.decode(stream, section.clone().into());
                        let Ok(Decoded::Ready(lines)) = decoded else { panic!("{decoded:?}") };
                        let token = lines.iter().find(|line| line.name == "x-token");
                        let is_whole = token.is_some_and(|token| token.value.len() == 200);
                        let _ = report.send((size, section[0] != 0, is_whole));
                        let answer = [head(&[(":status", "200")]), frame(DATA, b"ok")].concat();
                        let _ = send.write_all(&answer).await;
                        let _ = send.finish();
                    }
                    else => return,
                }
                let _ = decoder_stream.write_all(&decoder.take_instructions()).await;
            }
        }
    });
    let client = peer.client().build().expect("a client");
    let (mut first, mut seen) = (None, Vec::new());
    for _ in 0..REQUESTS {
        let request = client.get(peer.url()).header("x-token", "t".repeat(200));
        let whole = async { request.send().await?.text().await };
        let answer = tokio::time::timeout(SOON, whole).await.expect("an end");
        assert_eq!(answer.expect("a response"), "ok");
        let (size, refers, is_whole) = sizes.recv().await.expect("a report");
        assert!(is_whole, "the field arrives");
        let largest = *first.get_or_insert(size);
        if refers && size + 100 < largest {
            return;
        }
        seen.push((size, refers));
    }
    panic!("the table is not used: {seen:?}");
}
