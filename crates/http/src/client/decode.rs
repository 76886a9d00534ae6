//! Decodes content codings (RFC 9110 §8.4.1) while streaming: gzip, deflate, br and zstd.

use std::io;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{
    HeaderMap, HeaderValue, Response,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, RANGE},
};
use http_body::{Body as _, Frame};
use http_body_util::StreamBody;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, Chain};
use tokio_util::io::StreamReader;

use crate::{Body, Error, Kind};

/// The codings offered to the server.
const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, br, zstd, deflate");

/// The maximum number of codings applied to one response.
const MAX_CODINGS: usize = 4;

/// How much is decoded at once, in bytes.
const DECODE_CHUNK: usize = 32 * 1024;

/// What is passed over after the end of encoded data: zeros that fill up a block, and line breaks.
const PADDING: [u8; 3] = [0, b'\r', b'\n'];

/// The maximum amount of padding between members, or at the end, in bytes.
const MAX_PADDING: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Offers the codings, unless the caller chose its own or requests a range, which would count
/// octets of the encoded form.
pub(super) fn offer(headers: &mut HeaderMap) {
    if !headers.contains_key(ACCEPT_ENCODING) && !headers.contains_key(RANGE) {
        headers.insert(ACCEPT_ENCODING, ACCEPTED);
    }
}

/// Decodes a response if all of its codings are known, and removes the fields that no longer apply.
pub(super) fn decode(response: Response<Body>) -> Response<Body> {
    let codings = match codings(response.headers()) {
        Some(codings) if !codings.is_empty() && !response.body().is_end_stream() => codings,
        _ => return response,
    };
    let (mut head, body) = response.into_parts();
    head.headers.remove(CONTENT_ENCODING);
    head.headers.remove(CONTENT_LENGTH);
    // The coding applied last is removed first.
    let body = codings.into_iter().rev().fold(body, decode_one);
    Response::from_parts(head, body)
}

/// Returns the codings in the order in which they were applied; `None` if one is unknown.
fn codings(headers: &HeaderMap) -> Option<Vec<Coding>> {
    let mut found = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.to_str().ok()?.split(',').map(str::trim) {
            found.push(match name.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Coding::Gzip,
                "deflate" => Coding::Deflate,
                "br" => Coding::Brotli,
                "zstd" => Coding::Zstd,
                _ => return None,
            });
        }
    }
    (found.len() <= MAX_CODINGS).then_some(found)
}

fn decode_one(body: Body, coding: Coding) -> Body {
    let octets = body.into_stream().map_err(io::Error::other).boxed();
    let coded = std::io::Cursor::default().chain(StreamReader::new(octets));
    let state = (BytesMut::new(), State::Between { coded, is_first: true });
    let decoded = stream::try_unfold(state, move |(buffer, state)| step(coding, buffer, state));
    Body::boxed(StreamBody::new(decoded.map_ok(Frame::data)))
}

/// The coded octets: those that were read to recognise the format, and the rest.
type Coded = Chain<
    std::io::Cursor<Bytes>,
    StreamReader<futures_util::stream::BoxStream<'static, io::Result<Bytes>>, Bytes>,
>;

enum State {
    /// Before or after a member: what a decoder reads from its beginning to its end.
    Between {
        coded: Coded,
        is_first: bool,
    },
    Within(Box<Decoder>),
}

enum Decoder {
    Gzip(GzipDecoder<Coded>),
    Raw(DeflateDecoder<Coded>),
    Zlib(ZlibDecoder<Coded>),
    Brotli(BrotliDecoder<Coded>),
    Zstd(ZstdDecoder<Coded>),
}

/// Returns the next decoded octets, and `None` at the end.
async fn step(
    coding: Coding,
    mut buffer: BytesMut,
    mut state: State,
) -> Result<Option<(Bytes, (BytesMut, State))>, Error> {
    loop {
        state = match state {
            State::Between { coded, is_first } => {
                let member = match is_first {
                    true => first_member(coding, coded).await,
                    false => further_member(coding, coded).await,
                };
                match member.map_err(decode_error)? {
                    Some(decoder) => State::Within(Box::new(decoder)),
                    None => return Ok(None),
                }
            }
            State::Within(mut decoder) => {
                buffer.reserve(DECODE_CHUNK);
                if decoder.read(&mut buffer).await.map_err(decode_error)? > 0 {
                    let decoded = buffer.split().freeze();
                    return Ok(Some((decoded, (buffer, State::Within(decoder)))));
                }
                State::Between { coded: decoder.into_coded(), is_first: false }
            }
        };
    }
}

/// Starts to decode; `None` if there are no octets at all. Servers name a coding for an empty body,
/// too, although the coding of nothing would not be empty.
async fn first_member(coding: Coding, mut coded: Coded) -> io::Result<Option<Decoder>> {
    if coded.fill_buf().await?.is_empty() {
        return Ok(None);
    }
    Ok(Some(match coding {
        Coding::Gzip => Decoder::Gzip(GzipDecoder::new(coded)),
        Coding::Brotli => Decoder::Brotli(BrotliDecoder::new(coded)),
        Coding::Zstd => Decoder::Zstd(ZstdDecoder::new(coded)),
        Coding::Deflate => deflate(coded).await?,
    }))
}

/// Continues after the end of a member: gzip (RFC 1952 §2.2) and zstd (RFC 8878 §3.1) may have
/// more. Padding is passed over, as `gzip` does; other octets are an error, as in curl.
async fn further_member(coding: Coding, mut coded: Coded) -> io::Result<Option<Decoder>> {
    let mut padding = 0;
    loop {
        let octets = coded.fill_buf().await?;
        let Some(first) = octets.iter().find(|octet| !PADDING.contains(octet)).copied() else {
            let passed = octets.len();
            padding += passed;
            match passed {
                0 => return Ok(None),
                _ if padding > MAX_PADDING => {
                    return Err(invalid("too much padding follows the encoded data"));
                }
                _ => coded.consume(passed),
            }
            continue;
        };
        let passed = octets.iter().take_while(|octet| **octet != first).count();
        coded.consume(passed);
        return match (coding, first) {
            (Coding::Gzip, 0x1f) => Ok(Some(Decoder::Gzip(GzipDecoder::new(coded)))),
            // A frame, or one to skip.
            (Coding::Zstd, 0x28 | 0x50..=0x5f) => Ok(Some(Decoder::Zstd(ZstdDecoder::new(coded)))),
            _ => Err(invalid("other octets follow the encoded data")),
        };
    }
}

/// Decodes "deflate", which is the zlib format (RFC 9110 §8.4.1.2), although some servers send raw
/// deflate: the first two octets distinguish them.
async fn deflate(coded: Coded) -> io::Result<Decoder> {
    let (_, mut rest) = coded.into_inner();
    let mut start = Vec::new();
    while start.len() < 2 {
        let octets = rest.fill_buf().await?;
        let Some(octet) = octets.first().copied() else { break };
        rest.consume(1);
        start.push(octet);
    }
    let is_zlib = match start[..] {
        [method, flags, ..] => {
            method & 0x0f == 8 && (u16::from(method) << 8 | u16::from(flags)) % 31 == 0
        }
        _ => true,
    };
    let coded = std::io::Cursor::new(Bytes::from(start)).chain(rest);
    Ok(match is_zlib {
        true => Decoder::Zlib(ZlibDecoder::new(coded)),
        false => Decoder::Raw(DeflateDecoder::new(coded)),
    })
}

impl Decoder {
    async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read_buf(buffer).await,
            Self::Raw(decoder) => decoder.read_buf(buffer).await,
            Self::Zlib(decoder) => decoder.read_buf(buffer).await,
            Self::Brotli(decoder) => decoder.read_buf(buffer).await,
            Self::Zstd(decoder) => decoder.read_buf(buffer).await,
        }
    }

    /// Returns what follows the member.
    fn into_coded(self) -> Coded {
        match self {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Raw(decoder) => decoder.into_inner(),
            Self::Zlib(decoder) => decoder.into_inner(),
            Self::Brotli(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.into_inner(),
        }
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Converts an error: that of the connection is kept, others are decoding errors.
fn decode_error(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(own) => own,
        Err(error) => Error::from_source(Kind::BodyDecode, error),
    }
}

#[cfg(test)]
#[path = "decode/tests.rs"]
mod tests;
