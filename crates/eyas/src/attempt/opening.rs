//! The opening: bytes sent to every peer whose transport is up, so that the first one to answer
//! wins the race.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use eyas_race::candidate::Security;
use eyas_race::evidence::{Failure, Level};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use super::first_byte::{MAX_AHEAD, spoke};
use super::{Established, Reporter};
use crate::byte_stream::Bytewise;
use crate::failure::of_io;

/// What the caller says first.
#[derive(Clone, Debug, Default)]
pub(crate) enum Opening {
    /// It is not known yet.
    #[default]
    Awaited,
    /// This, which is as good said to several.
    Said(Bytes),
    /// Nothing that could be said to several: whose transport is up wins.
    Nothing,
}

/// The opening of one race, for its attempts.
#[derive(Clone, Debug)]
pub(crate) struct OpeningOfRace {
    pub(crate) opening: watch::Receiver<Opening>,
    /// Whether the transport of any attempt is up.
    pub(crate) is_up: watch::Sender<bool>,
}

/// What became of it.
#[derive(Default)]
struct Talk {
    opened: Option<Instant>,
    said: Option<Bytes>,
}

impl OpeningOfRace {
    /// Waits for the opening, says it, and waits for the answer, unless there is nothing to say. A
    /// peer that speaks before that needs no opening.
    pub(super) async fn hold(
        mut self,
        established: &mut Established,
        origin: Instant,
        reporter: &Reporter,
    ) -> Result<(), Failure> {
        let reached = match established.info.security {
            Security::None => Level::Transport,
            Security::Tls | Security::Dtls => Level::Security,
        };
        reporter.progress(reached, established.info.rtt).await;
        self.is_up.send_replace(true);
        let opening = &mut self.opening;
        let talk = talk(established.transport.bytes(), opening, reached).await?;
        let timings = &mut established.info.timings;
        timings.opened = talk.opened.map(|at| at.saturating_duration_since(origin));
        if let Some(said) = talk.said {
            timings.spoke = Some(origin.elapsed());
            established.said = said;
            reporter.progress(Level::FirstByte, established.info.rtt).await;
        }
        Ok(())
    }
}

async fn talk(
    stream: &mut dyn Bytewise,
    opening: &mut watch::Receiver<Opening>,
    reached: Level,
) -> Result<Talk, Failure> {
    let mut said = BytesMut::with_capacity(MAX_AHEAD);
    let opening = tokio::select! {
        biased;
        opening = settled(opening) => opening,
        read = stream.read_buf(&mut said) => {
            return Ok(Talk { opened: None, said: Some(spoke(read, said, reached)?) });
        }
    };
    let Some(opening) = opening else { return Ok(Talk::default()) };
    let failed = |error| of_io(&error, reached);
    stream.write_all(&opening).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let opened = Some(Instant::now());
    let read = stream.read_buf(&mut said).await;
    Ok(Talk { opened, said: Some(spoke(read, said, reached)?) })
}

/// Waits for the opening. If the sender is dropped, there is none.
async fn settled(opening: &mut watch::Receiver<Opening>) -> Option<Bytes> {
    match opening.wait_for(|opening| !matches!(opening, Opening::Awaited)).await.as_deref() {
        Ok(Opening::Said(bytes)) => Some(bytes.clone()),
        Ok(Opening::Awaited | Opening::Nothing) | Err(_) => None,
    }
}
