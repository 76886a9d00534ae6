//! Decodes content codings (RFC 9110 §8.4.1) while streaming: gzip, deflate, br and zstd.

use std::io;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{
    HeaderMap, HeaderValue, Response,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, RANGE},
};
use http_body::{Body as _, Frame};
use http_body_util::StreamBody;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};
use tokio_util::io::{ReaderStream, StreamReader};

use crate::{Body, Error, Kind};

/// The codings offered to the server.
const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, br, zstd, deflate");

/// The maximum number of codings applied to one response.
const MAX_CODINGS: usize = 4;

/// How much is decoded at once, in bytes.
const DECODE_CHUNK: usize = 32 * 1024;

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
    let coded = StreamReader::new(body.into_stream().map_err(io::Error::other));
    match coding {
        Coding::Gzip => {
            let mut decoder = GzipDecoder::new(coded);
            decoder.multiple_members(true);
            stream(decoder)
        }
        Coding::Brotli => stream(BrotliDecoder::new(coded)),
        Coding::Zstd => {
            let mut decoder = ZstdDecoder::new(coded);
            decoder.multiple_members(true);
            stream(decoder)
        }
        Coding::Deflate => {
            let decoded = futures_util::stream::once(deflate(coded));
            let decoded = decoded.try_flatten().map_ok(Frame::data);
            Body::boxed(StreamBody::new(decoded))
        }
    }
}

/// Decodes "deflate", which is the zlib format (RFC 9110 §8.4.1.2), although some servers send raw
/// deflate: the first two octets distinguish them.
async fn deflate<R>(
    coded: R,
) -> Result<futures_util::stream::BoxStream<'static, Result<Bytes, Error>>, Error>
where
    R: AsyncBufRead + Send + Unpin + 'static,
{
    let mut coded = BufReader::with_capacity(DECODE_CHUNK, coded);
    let start = coded.fill_buf().await.map_err(decode_error)?;
    let is_zlib = match start {
        [method, flags, ..] => {
            method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0
        }
        _ => true,
    };
    let chunks: futures_util::stream::BoxStream<'static, _> = match is_zlib {
        true => Box::pin(chunks(ZlibDecoder::new(coded))),
        false => Box::pin(chunks(DeflateDecoder::new(coded))),
    };
    Ok(chunks)
}

fn stream(decoder: impl AsyncRead + Send + 'static) -> Body {
    Body::boxed(StreamBody::new(chunks(decoder).map_ok(Frame::data)))
}

fn chunks(
    decoder: impl AsyncRead + Send + 'static,
) -> impl futures_util::Stream<Item = Result<Bytes, Error>> + Send + 'static {
    ReaderStream::with_capacity(decoder, DECODE_CHUNK).map_err(decode_error)
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
