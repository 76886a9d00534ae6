//! Tests of each coding, stacked codings, invalid data, and responses that are left unchanged.

use async_compression::tokio::bufread as compression;
use tokio::io::AsyncReadExt;

use super::*;

const PLAIN: &[u8] = b"one two three one two three one two three";

async fn coded(coding: &str, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        "gzip" => compression::GzipEncoder::new(plain).read_to_end(&mut out).await,
        "br" => compression::BrotliEncoder::new(plain).read_to_end(&mut out).await,
        "zstd" => compression::ZstdEncoder::new(plain).read_to_end(&mut out).await,
        "deflate" => compression::ZlibEncoder::new(plain).read_to_end(&mut out).await,
        "raw deflate" => compression::DeflateEncoder::new(plain).read_to_end(&mut out).await,
        other => panic!("no coding {other}"),
    }
    .expect("coded");
    out
}

fn response(coding: &'static str, body: Vec<u8>) -> Response<Body> {
    let chunks: Vec<_> =
        body.chunks(7).map(|chunk| Ok::<_, Error>(Bytes::copy_from_slice(chunk))).collect();
    Response::builder()
        .header(CONTENT_ENCODING, coding)
        .header(CONTENT_LENGTH, body.len())
        .body(Body::from_stream(futures_util::stream::iter(chunks)))
        .expect("a response")
}

#[tokio::test]
async fn every_coding_is_decoded() {
    for (name, coder) in [
        ("gzip", "gzip"),
        ("X-GZIP", "gzip"),
        ("br", "br"),
        ("zstd", "zstd"),
        ("deflate", "deflate"),
        ("deflate", "raw deflate"),
    ] {
        let decoded = decode(response(name, coded(coder, PLAIN).await));
        assert!(!decoded.headers().contains_key(CONTENT_ENCODING));
        assert!(!decoded.headers().contains_key(CONTENT_LENGTH));
        assert_eq!(decoded.into_body().bytes().await.expect(coder), PLAIN, "{coder}");
    }
}

#[tokio::test]
async fn stacked_codings_and_gzip_members() {
    let twice = coded("br", &coded("gzip", PLAIN).await).await;
    let decoded = decode(response("gzip, br", twice)).into_body();
    assert_eq!(decoded.bytes().await.expect("decoded"), PLAIN);
    let members = [coded("gzip", b"a").await, coded("gzip", b"b").await].concat();
    let decoded = decode(response("gzip", members)).into_body();
    assert_eq!(decoded.bytes().await.expect("decoded").as_ref(), b"ab");
}

#[tokio::test]
async fn an_unknown_coding_is_left_unchanged() {
    for coding in ["compress", "gzip, aes128gcm", "br,br,br,br,br", ""] {
        let left = decode(response(coding, PLAIN.to_vec()));
        assert!(left.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(left.into_body().bytes().await.expect("unchanged"), PLAIN);
    }
}

#[tokio::test]
async fn bad_and_truncated_data_are_errors() {
    for coding in ["gzip", "br", "zstd", "deflate"] {
        let mut cut = coded(coding, &PLAIN.repeat(50)).await;
        cut.truncate(cut.len() - 4);
        let error = decode(response(coding, cut)).into_body().bytes().await.expect_err(coding);
        assert_eq!(error.kind(), Kind::BodyDecode, "{coding}: {error}");
    }
    let error = decode(response("gzip", PLAIN.to_vec())).into_body().bytes().await;
    assert_eq!(error.expect_err("not gzip").kind(), Kind::BodyDecode);
}

#[tokio::test]
async fn a_connection_error_is_passed_through() {
    for coding in ["gzip", "deflate"] {
        let first = Bytes::from(coded(coding, PLAIN).await).slice(..8);
        let reset = Error::new(Kind::BodyReset, "reset");
        let frames = futures_util::stream::iter([Ok(Frame::data(first)), Err(reset)]);
        let response = Response::builder()
            .header(CONTENT_ENCODING, coding)
            .body(Body::boxed(StreamBody::new(frames)))
            .expect("a response");
        let error = decode(response).into_body().bytes().await.expect_err(coding);
        assert_eq!(error.kind(), Kind::BodyReset);
    }
}

#[test]
fn codings_are_offered_unless_the_caller_chose() {
    let mut headers = HeaderMap::new();
    offer(&mut headers);
    assert_eq!(headers[ACCEPT_ENCODING], ACCEPTED);
    let mut part = HeaderMap::from_iter([(RANGE, HeaderValue::from_static("bytes=0-1"))]);
    offer(&mut part);
    assert!(!part.contains_key(ACCEPT_ENCODING));
    let own = HeaderValue::from_static("identity");
    let mut chosen = HeaderMap::from_iter([(ACCEPT_ENCODING, own.clone())]);
    offer(&mut chosen);
    assert_eq!(chosen[ACCEPT_ENCODING], own);
}

//= hostile client
//# endless padding after encoded data
//= bound: `MAX_PADDING`
#[tokio::test]
async fn padding_is_passed_over_up_to_its_limit() {
    for coding in ["gzip", "br", "zstd", "deflate"] {
        let whole = coded(coding, PLAIN).await;
        for (padding, passes) in [
            (vec![0; MAX_PADDING], true),
            (vec![0; MAX_PADDING + 1], false),
            (b"\r\n".to_vec(), true),
        ] {
            let body = decode(response(coding, [whole.clone(), padding].concat())).into_body();
            assert_eq!(body.bytes().await.is_ok(), passes, "{coding}");
        }
        let followed = decode(response(coding, [&whole[..], b"\n<!-- -->"].concat())).into_body();
        assert_eq!(followed.bytes().await.expect_err(coding).kind(), Kind::BodyDecode);
    }
    // Further members may follow padding.
    let members = [coded("gzip", b"a").await, vec![0; 9], coded("gzip", b"b").await].concat();
    let decoded = decode(response("gzip", members)).into_body();
    assert_eq!(decoded.bytes().await.expect("decoded").as_ref(), b"ab");
}
