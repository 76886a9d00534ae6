//! Responses that come before their requests have ended: they arrive whole, over every version.

use std::convert::Infallible;

use bytes::Bytes;
use eyas_http::serve::{Limits, ServerBuilder};
use eyas_http::{Body, Versions};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::{EACH_VERSION, Stage, TIMEOUT, client};

/// The limits of the gateway's server, in bytes.
const MAX_BODY: usize = 5_000_000;
const MAX_HEAD: usize = 16_384;

/// More than all buffers on the way.
const UPLOAD: usize = 30_000_000;

/// What the upstream answers without reading the body.
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nforbidden";
const FORBIDDEN_AND_CLOSED: &str =
    "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 9\r\n\r\nforbidden";

/// Why a request is refused.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// Its body is announced as larger than allowed.
    Announced,
    /// Its body turns out to be larger than allowed; the upstream has not answered.
    TooLarge,
    /// Its head is larger than allowed.
    Head,
    /// The upstream refuses it with this response, and then reads no more.
    Upstream(&'static str),
    /// The same, and it closes the connection, which resets it.
    UpstreamCloses(&'static str),
}

impl Why {
    const ALL: [Self; 6] = [
        Self::Announced,
        Self::TooLarge,
        Self::Head,
        Self::Upstream(FORBIDDEN),
        Self::UpstreamCloses(FORBIDDEN),
        Self::UpstreamCloses(FORBIDDEN_AND_CLOSED),
    ];

    fn status(self) -> StatusCode {
        match self {
            Self::Announced | Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Head => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Upstream(_) | Self::UpstreamCloses(_) => StatusCode::FORBIDDEN,
        }
    }
}

fn limited(why: Why) -> impl FnOnce(ServerBuilder) -> ServerBuilder {
    let body_bytes = match why {
        Why::Announced | Why::TooLarge => MAX_BODY as u64,
        _ => u64::MAX,
    };
    move |server| server.limits(Limits { body_bytes, header_bytes: MAX_HEAD, ..Limits::default() })
}

/// Plays an upstream that refuses a request without reading its body, or only reads.
async fn refuse(mut stage: Stage, why: Why) {
    let mut upstream = stage.connection().await;
    upstream.head().await;
    match why {
        Why::Upstream(answer) | Why::UpstreamCloses(answer) => upstream.send(answer).await,
        _ => {
            let _ = tokio::io::copy(&mut upstream.stream, &mut tokio::io::sink()).await;
        }
    }
    if matches!(why, Why::UpstreamCloses(_)) {
        drop(upstream);
        std::future::pending::<()>().await;
    }
    std::future::pending().await
}

/// A body of 64 KiB pieces, with or without a known length.
fn body(why: Why) -> Body {
    match why {
        Why::TooLarge => {
            let pieces = std::iter::repeat_n(Bytes::from(vec![b'.'; 1 << 16]), UPLOAD >> 16);
            Body::from_stream(futures_util::stream::iter(pieces.map(Ok::<_, Infallible>)))
        }
        _ => Body::from(vec![b'.'; UPLOAD]),
    }
}

async fn refused(why: Why, version: Versions) {
    let stage = Stage::with(limited(why), |gateway| gateway).await;
    let url = format!("https://localhost:{}/p", stage.running.local_addr().port());
    let mut post = client(&stage, version).post(&url).body(body(why));
    if let Why::Head = why {
        post = post.header("x-big", "x".repeat(MAX_HEAD));
    }
    let playing = tokio::spawn(refuse(stage, why));
    let exchange = async {
        let response = post.send().await?;
        Ok::<_, eyas_http::Error>((response.status(), response.bytes().await?))
    };
    let (status, text) = tokio::time::timeout(TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| panic!("{why:?} {version:?}: no answer"))
        .unwrap_or_else(|error| panic!("{why:?} {version:?}: {error}"));
    assert_eq!(status, why.status(), "{why:?} {version:?}");
    if why.status() == StatusCode::FORBIDDEN {
        assert_eq!(text, "forbidden", "{why:?} {version:?}");
    }
    playing.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_before_the_end_of_the_request_arrives_over_every_version() {
    for why in Why::ALL {
        for version in EACH_VERSION {
            refused(why, version).await;
        }
    }
}

/// The same with a client that reads nothing before it has sent everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_arrives_at_clients_that_only_write() {
    for why in Why::ALL {
        let set = limited(why);
        let stage = Stage::with(|server| set(server).plain(), |gateway| gateway).await;
        let mut stream = TcpStream::connect(stage.running.local_addr()).await.expect("connects");
        let playing = tokio::spawn(refuse(stage, why));
        let big = if let Why::Head = why { "x".repeat(MAX_HEAD) } else { String::new() };
        let head = format!(
            "POST /p HTTP/1.1\r\nHost: a\r\nX-Big: {big}\r\nContent-Length: {UPLOAD}\r\n\r\n"
        );
        let exchange = async {
            stream.write_all(head.as_bytes()).await.expect("the head is taken");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let sent = stream.write_all(&vec![b'.'; UPLOAD]).await;
            sent.unwrap_or_else(|error| panic!("{why:?}: {error} while it sends"));
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.expect("an answer");
            String::from_utf8_lossy(&answer).into_owned()
        };
        let answer = tokio::time::timeout(TIMEOUT, exchange).await;
        let answer = answer.unwrap_or_else(|_| panic!("{why:?}: no answer"));
        assert_eq!(answer, format!("HTTP/1.1 {}", why.status().as_u16()), "{why:?}");
        playing.abort();
    }
}
