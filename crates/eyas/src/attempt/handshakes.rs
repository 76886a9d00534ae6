//! The handshakes of an attempt, one for each of its [ClientHellos](super::client_hello).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use eyas_race::evidence::AttemptFailure;

use super::client_hello::{ClientHellos, HandshakeFailure, HelloDecision, HelloInput, HelloLength};
use super::event::AttemptEvent;
use super::{AttemptReporter, CandidateAttempt};

/// The note on a connection that was not secured with the larger ClientHello.
const SHORTENED: &str = "a ClientHello of two packets, with X25519MLKEM768, did not get through to this \
     server, and one with X25519 alone did: a quantum computer could read what was recorded";

/// A handshake, and whether the server has answered its ClientHello.
pub(super) struct Handshake<'a, B> {
    pub(super) begin: B,
    pub(super) answered: &'a AtomicBool,
}

/// Runs the handshakes, and returns the result of the one that was answered first.
pub(super) async fn run<T>(
    attempt: &CandidateAttempt,
    reporter: &AttemptReporter,
    rtt: Option<Duration>,
    long: Handshake<'_, impl AsyncFnOnce() -> Result<T, HandshakeFailure>>,
    short: Handshake<'_, impl AsyncFnOnce() -> Result<T, HandshakeFailure>>,
    has_arrived: impl Fn() -> bool,
) -> Result<T, AttemptFailure> {
    let (origin, mut hellos) = (Instant::now(), ClientHellos::new(rtt));
    let (long_answered, short_answered) = (long.answered, short.answered);
    // Boxed, because they are large and this future would have room for both, twice; the second one is seldom needed.
    let mut long = pin!(Some(Box::pin((long.begin)())));
    let mut short = pin!(Some(async { Box::pin((short.begin)()).await }));
    let mut long_failure = None;
    loop {
        let (which, step) = match hellos.decision() {
            HelloDecision::AwaitLong(until) => tokio::select! {
                biased;
                step = next(long.as_mut(), long_answered) => (HelloLength::Long, step),
                () = tokio::time::sleep_until((origin + until).into()) => {
                    let waited = HelloInput::Waited { has_arrived: has_arrived() };
                    hellos.handle_input(until, waited);
                    continue;
                }
            },
            HelloDecision::AwaitBoth => tokio::select! {
                biased;
                step = next(long.as_mut(), long_answered) => (HelloLength::Long, step),
                step = next(short.as_mut(), short_answered) => (HelloLength::Short, step),
            },
            HelloDecision::Await(HelloLength::Long) => {
                short.set(None);
                (HelloLength::Long, next(long.as_mut(), long_answered).await)
            }
            HelloDecision::Await(HelloLength::Short) => {
                long.set(None);
                (HelloLength::Short, next(short.as_mut(), short_answered).await)
            }
        };
        let now = origin.elapsed();
        if step.is_answer() {
            hellos.handle_input(now, HelloInput::Answered(which));
            if hellos.shows_length() {
                attempt.shorten_hello(reporter, long_failure.as_ref()).await;
            }
        }
        match step.ended {
            None => {}
            Some(Ok(secured)) => return Ok(secured),
            Some(Err(HandshakeFailure { failure, fault })) => {
                match hellos.handle_input(now, HelloInput::Failed(which, fault)) {
                    // What the long one met says more, should both fail.
                    Some(HelloLength::Long) => return Err(long_failure.unwrap_or(failure)),
                    Some(HelloLength::Short) => return Err(failure),
                    None if which == HelloLength::Long => long_failure = Some(failure),
                    None => {}
                }
            }
        }
    }
}

/// What has become of a handshake since it was last asked.
struct HandshakeStep<T> {
    is_answered: bool,
    ended: Option<Result<T, HandshakeFailure>>,
}

impl<T> HandshakeStep<T> {
    fn is_answer(&self) -> bool {
        self.is_answered || matches!(self.ended, Some(Ok(_)))
    }
}

/// Runs a handshake until the server has answered, or else until its end.
async fn next<T, F: Future<Output = Result<T, HandshakeFailure>>>(
    mut handshake: Pin<&mut Option<F>>,
    answered: &AtomicBool,
) -> HandshakeStep<T> {
    poll_fn(|context| {
        let Some(running) = handshake.as_mut().as_pin_mut() else { return Poll::Pending };
        let polled = running.poll(context);
        let is_answered = answered.swap(false, Ordering::Relaxed);
        match polled {
            Poll::Ready(ended) => Poll::Ready(HandshakeStep { is_answered, ended: Some(ended) }),
            Poll::Pending if is_answered => Poll::Ready(HandshakeStep { is_answered, ended: None }),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

impl CandidateAttempt {
    /// Returns whether a ClientHello of two packets is known not to get through.
    pub(super) fn has_short_hello(&self) -> bool {
        self.short_hello.load(Ordering::Relaxed)
    }

    /// Sends what there is, where no ClientHello is shorter than another.
    pub(super) fn forget_short_hello(&self) {
        self.short_hello.store(false, Ordering::Relaxed);
    }

    /// Returns what is worth knowing about its ClientHello.
    pub(super) fn hello_note(&self) -> Option<&'static str> {
        self.has_short_hello().then_some(SHORTENED)
    }

    /// Records that the long ClientHello did not get through: it failed like that, or was not answered.
    async fn shorten_hello(&self, reporter: &AttemptReporter, failure: Option<&AttemptFailure>) {
        if self.short_hello.swap(true, Ordering::Relaxed) {
            return;
        }
        let what = failure.map_or_else(|| "no answer".to_owned(), ToString::to_string);
        let detail = format!(
            "with X25519MLKEM768 it takes two packets ({what}), with X25519 alone one, which was answered"
        );
        reporter.report(AttemptEvent::LongHelloFailed(detail)).await;
    }
}
