use std::convert::Infallible;
use std::io;

use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue};
use http_body_util::{Full, StreamBody};
use proptest::prelude::*;

use super::*;

/// Returns a body of these pieces, which then breaks off, or ends with trailers.
fn of(pieces: &[Vec<u8>], breaks: bool) -> impl Body<Data = Bytes, Error = io::Error> + use<> {
    let data = pieces.iter().map(|piece| Ok(Frame::data(Bytes::from(piece.clone()))));
    let last = match breaks {
        true => Err(io::Error::other("gone")),
        false => {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", HeaderValue::from_static("1"));
            trailers.insert("content-length", HeaderValue::from_static("9"));
            Ok(Frame::trailers(trailers))
        }
    };
    let parts: Vec<_> = data.chain([last]).collect();
    // Every other part arrives late.
    let parts = stream::iter(parts.into_iter().enumerate()).then(|(at, part)| async move {
        if at % 2 == 1 {
            tokio::task::yield_now().await;
        }
        part
    });
    StreamBody::new(Box::pin(parts))
}

/// Reads a body, and returns its data, whether it ended cleanly, and its trailers.
async fn read(upload: &mut UploadBody) -> (Vec<u8>, bool, Option<HeaderMap>) {
    let (mut bytes, mut trailers) = (Vec::new(), None);
    while let Some(part) = upload.frame().await {
        match part.map(Frame::into_data) {
            Ok(Ok(data)) => bytes.extend_from_slice(&data),
            Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
            Err(_) => return (bytes, false, trailers),
        }
    }
    (bytes, true, trailers)
}

proptest! {
    /// However a body is split, peeked at and announced, its data arrives in order and once, and it ends cleanly only
    /// if it is complete and as long as announced.
    #[test]
    fn no_byte_is_lost_or_repeated(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
        announced in prop::option::of(0_u64..60),
        breaks in any::<bool>(),
        peeks in any::<bool>(),
    ) {
        let whole = pieces.concat();
        // Half of the announced lengths are right.
        let announced = announced.map(|length| if length < 30 { whole.len() as u64 } else { length });
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let progress = UploadProgress::new(false);
        let mut upload = UploadBody::new(of(&pieces, breaks), announced, Arc::clone(&progress));
        let (bytes, ended, trailers) = runtime.block_on(async {
            if peeks && upload.is_empty().await.is_err() {
                return (Vec::new(), false, None);
            }
            read(&mut upload).await
        });
        prop_assert!(whole.starts_with(&bytes));
        let is_right = announced.is_none_or(|length| length == whole.len() as u64);
        prop_assert_eq!(ended, is_right && !breaks);
        prop_assert_eq!(progress.is_over(), ended);
        prop_assert_eq!(progress.error().is_none(), ended);
        prop_assert!(announced.is_none_or(|length| bytes.len() as u64 <= length));
        if ended {
            prop_assert_eq!(bytes.len() as u64, progress.bytes());
            prop_assert_eq!(bytes, whole);
            let trailers = trailers.expect("they arrived");
            prop_assert_eq!(trailers.len(), 1);
            prop_assert!(trailers.contains_key("x-sum"));
        }
    }
}

#[tokio::test]
async fn an_unwanted_body_is_never_read() {
    let progress = UploadProgress::new(true);
    let body = Full::<Bytes>::from("body").map_err(|never: Infallible| match never {});
    let mut upload = UploadBody::new(body, Some(4), Arc::clone(&progress));
    progress.gate.close();
    assert_eq!(read(&mut upload).await.0, b"");
    assert_eq!(progress.error(), Some(UploadError::Unwanted));
    assert!(!progress.is_over());
}
