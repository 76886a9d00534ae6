use std::future::{pending, ready};

use eyas_race::evidence::Cause;

use super::*;

fn peer(last: u8) -> SocketAddr {
    ([192, 0, 2, last], 443).into()
}

fn report(remote: SocketAddr, cause: IcmpCause) -> IcmpReport {
    IcmpReport { remote, cause, sender: Some([198, 51, 100, 1].into()), quoted: None }
}

/// Returns the failure that has been reported to an attempt, if there is one.
async fn failure_of(attempt: &mut PendingAttempt) -> Option<Failure> {
    tokio::select! {
        biased;
        result = attempt.unless_failed(pending::<()>()) => result.err(),
        () = ready(()) => None,
    }
}

#[tokio::test]
async fn a_report_fails_the_attempts_that_it_concerns() {
    let unanswered = Arc::new(Unanswered::default());
    let (mut first, mut second, mut other) =
        (unanswered.register(peer(1)), unanswered.register(peer(1)), unanswered.register(peer(2)));
    unanswered.handle_report(&report(peer(1), IcmpCause::PortUnreachable));
    for attempt in [&mut first, &mut second] {
        let failure = failure_of(attempt).await.unwrap();
        assert_eq!(failure.cause, Cause::Refused);
        assert!(failure.detail.contains("198.51.100.1"), "{failure}");
    }
    assert_eq!(failure_of(&mut other).await, None);
    unanswered.handle_report(&report(peer(2), IcmpCause::Prohibited));
    assert_eq!(failure_of(&mut other).await.unwrap().cause, Cause::Unreachable);
}

#[tokio::test]
async fn a_report_does_not_end_an_answered_attempt() {
    let unanswered = Arc::new(Unanswered::default());
    let mut attempt = unanswered.register(peer(1));
    unanswered.answered(peer(2));
    unanswered.answered(peer(1));
    unanswered.handle_report(&report(peer(1), IcmpCause::PortUnreachable));
    assert_eq!(failure_of(&mut attempt).await, None);
}

#[tokio::test]
async fn a_sufficient_mtu_does_not_fail_an_attempt() {
    let unanswered = Arc::new(Unanswered::default());
    let mut attempt = unanswered.register(peer(1));
    unanswered.handle_report(&report(peer(1), IcmpCause::TooBig(1228)));
    assert_eq!(failure_of(&mut attempt).await, None);
    unanswered.handle_report(&report(peer(1), IcmpCause::TooBig(1227)));
    assert_eq!(failure_of(&mut attempt).await.unwrap().cause, Cause::Unreachable);
}

#[tokio::test]
async fn a_complete_handshake_takes_precedence_over_a_report() {
    let unanswered = Arc::new(Unanswered::default());
    let mut attempt = unanswered.register(peer(1));
    unanswered.handle_report(&report(peer(1), IcmpCause::NoRoute));
    assert_eq!(attempt.unless_failed(ready(7)).await, Ok(7));
    drop(attempt);
    assert!(unanswered.lock().attempts.is_empty());
}
