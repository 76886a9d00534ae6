//! A body on its way to its destination.

use std::time::{Instant, SystemTime};

use bytes::Bytes;
use eyas_http::{Error, Response};
use futures_util::FutureExt;
use http::StatusCode;
use http::header::LAST_MODIFIED;

use super::pace::TransferPace;
use super::{failure, report};
use crate::failure::Failure;
use crate::flags::{CommonFlags, GetFlags};
use crate::output::{BodyProgress, BodySink};

/// How a body is received.
pub(super) struct BodyReception<'a> {
    pub(super) flags: &'a GetFlags,
    pub(super) common: &'a CommonFlags,
    /// Whether the destination is complete already, and the body of the response is not its content.
    pub(super) keeps_file: bool,
    /// How much of the whole is there already.
    pub(super) offset: u64,
}

impl BodyReception<'_> {
    /// Writes the body to its destination; an incomplete file does not appear there. Returns how many
    /// bytes were received, and counts them as they are.
    pub(super) async fn body(
        &self,
        response: &mut Response,
        mut sink: BodySink,
        received: &mut u64,
    ) -> Result<u64, Failure> {
        let output = &self.flags.output;
        if self.keeps_file {
            return Ok(0);
        }
        if (output.include || self.flags.request.head) && !self.common.json {
            let heads = report::heads(response);
            // A file gets the octets of the peer.
            let heads = if sink.is_terminal() { report::shown_head(&heads) } else { heads };
            sink.write(heads.into()).await?;
        }
        if self.flags.request.head {
            // As in curl, a method that has a body changes nothing about that (-I -X GET).
            return sink.finish(self.changed_at(response)).await.map(|()| 0);
        }
        let before = sink.written();
        let watched =
            !output.silent && !output.no_progress_meter && !self.common.json && !sink.is_terminal();
        let length = response.content_length().map(|length| length + self.offset);
        let progress = BodyProgress::new(length, watched, self.common.color);
        progress.add(usize::try_from(self.offset).unwrap_or(usize::MAX));
        let rate = output.limit_rate.filter(|rate| *rate > 0);
        let mut pace = rate.map(|rate| TransferPace::new(rate, Instant::now()));
        loop {
            let piece = match ready_chunk(response).await {
                Some(ready) => ready,
                None => {
                    sink.flush().await?;
                    response.chunk().await
                }
            };
            let piece = piece.map_err(|error| failure::from_error(&error, None));
            let piece = match piece {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(failure) => {
                    // What is kept for another run is to be as much as there is.
                    sink.flush().await?;
                    return Err(failure);
                }
            };
            progress.add(piece.len());
            let taken = piece.len();
            sink.write(piece).await?;
            *received = response.encoded_length().unwrap_or(sink.written() - before);
            if let Some(pace) = &mut pace {
                sink.flush().await?;
                tokio::time::sleep_until(pace.count(taken).into()).await;
            }
        }
        progress.clear();
        if response.status() == StatusCode::NOT_MODIFIED {
            // The existing file is the same as the server's, so it is kept.
            return Ok(0);
        }
        sink.finish(self.changed_at(response)).await?;
        Ok(*received)
    }

    /// Returns when the representation was last changed, if the file is to have that time.
    fn changed_at(&self, response: &Response) -> Option<SystemTime> {
        let text = response.headers().get(LAST_MODIFIED).filter(|_| self.flags.output.remote_time);
        httpdate::parse_http_date(text?.to_str().ok()?).ok()
    }
}

/// Returns the next chunk of the body, its end or an error, unless it has to be waited for.
async fn ready_chunk(response: &mut Response) -> Option<Result<Option<Bytes>, Error>> {
    if let Some(ready) = response.chunk().now_or_never() {
        return Some(ready);
    }
    // It may have arrived already: the task of the connection has its turn.
    tokio::task::yield_now().await;
    response.chunk().now_or_never()
}
