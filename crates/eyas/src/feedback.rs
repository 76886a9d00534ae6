//! Reports from the application to the memory.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};

type LearnOutcome = dyn Fn(EvidenceLevel, Option<AttemptFailure>) + Send + Sync;

/// Reports to the memory how a connection fared after the race. Cheap to clone; all clones belong
/// to the same connection.
#[derive(Clone)]
pub struct ConnectionFeedback(Option<Arc<FeedbackSink>>);

struct FeedbackSink {
    first_byte: AtomicBool,
    broken: AtomicBool,
    learn: Box<LearnOutcome>,
}

impl ConnectionFeedback {
    /// Returns a handle for connections that are not remembered: those accepted by a listener.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Creates a handle for callers that keep a memory of their own: `learn` is called with how far
    /// the connection came, and how it failed.
    pub fn new(
        learn: impl Fn(EvidenceLevel, Option<AttemptFailure>) + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(FeedbackSink {
            first_byte: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            learn: Box::new(learn),
        })))
    }

    /// Reports that a byte from the peer's application has arrived. Only the first call has an
    /// effect.
    pub fn first_byte_seen(&self) {
        if let Some(sink) = &self.0
            && !sink.first_byte.swap(true, Ordering::Relaxed)
        {
            (sink.learn)(EvidenceLevel::FirstByte, None);
        }
    }

    /// Reports that MPTCP fell back to TCP after the handshake, when the first byte arrived: that is
    /// none of MPTCP.
    pub(crate) fn fell_back(&self) {
        if let Some(sink) = &self.0
            && !sink.first_byte.swap(true, Ordering::Relaxed)
        {
            let detail = "a device on the path removes MPTCP after the handshake";
            let failure =
                AttemptFailure::new(FailureCause::FellBack, EvidenceLevel::Answered, detail);
            (sink.learn)(failure.reached, Some(failure));
        }
    }

    /// Reports that the connection turned out not to work. Only the first call has an effect.
    pub fn broke(&self, failure: AttemptFailure) {
        if let Some(sink) = &self.0
            && !sink.broken.swap(true, Ordering::Relaxed)
        {
            (sink.learn)(failure.reached, Some(failure));
        }
    }
}

impl fmt::Debug for ConnectionFeedback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionFeedback").field("remembered", &self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_fallback_takes_the_place_of_the_first_byte() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let feedback = ConnectionFeedback::new({
            let reported = Arc::clone(&reported);
            move |level, failure: Option<AttemptFailure>| {
                let cause = failure.map(|failure| failure.cause);
                reported.lock().expect("not poisoned").push((level, cause));
            }
        });
        feedback.clone().fell_back();
        feedback.first_byte_seen();
        feedback.fell_back();
        let reported = reported.lock().expect("not poisoned");
        assert_eq!(*reported, [(EvidenceLevel::Answered, Some(FailureCause::FellBack))]);
    }
}
