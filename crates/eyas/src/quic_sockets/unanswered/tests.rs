use std::future::{pending, ready};

use eyas_race::evidence::Cause;

use super::*;

fn peer(last: u8) -> SocketAddr {
    ([192, 0, 2, last], 443).into()
}

fn report(remote: SocketAddr, cause: IcmpCause) -> Report {
    Report { remote, cause, sender: Some([198, 51, 100, 1].into()), quoted: None }
}

/// What an attempt has heard by now, if it has ended by it.
async fn heard(attempt: &mut Listening) -> Option<Failure> {
    tokio::select! {
        biased;
        ended = attempt.unless_ended(pending::<()>()) => ended.err(),
        () = ready(()) => None,
    }
}

#[tokio::test]
async fn a_report_ends_the_attempts_that_it_is_about() {
    let all = Arc::new(Unanswered::default());
    let (mut one, mut again, mut other) =
        (all.begin(peer(1)), all.begin(peer(1)), all.begin(peer(2)));
    all.reported(&report(peer(1), IcmpCause::PortUnreachable));
    for attempt in [&mut one, &mut again] {
        let failure = heard(attempt).await.unwrap();
        assert_eq!(failure.cause, Cause::Refused);
        assert!(failure.detail.contains("198.51.100.1"), "{failure}");
    }
    assert_eq!(heard(&mut other).await, None);
    all.reported(&report(peer(2), IcmpCause::Prohibited));
    assert_eq!(heard(&mut other).await.unwrap().cause, Cause::Unreachable);
}

#[tokio::test]
async fn a_report_does_not_end_an_answered_attempt() {
    let all = Arc::new(Unanswered::default());
    let mut attempt = all.begin(peer(1));
    all.answered(peer(2));
    all.answered(peer(1));
    all.reported(&report(peer(1), IcmpCause::PortUnreachable));
    assert_eq!(heard(&mut attempt).await, None);
}

#[tokio::test]
async fn a_path_that_is_large_enough_is_no_reason_to_end() {
    let all = Arc::new(Unanswered::default());
    let mut attempt = all.begin(peer(1));
    all.reported(&report(peer(1), IcmpCause::TooBig(1228)));
    assert_eq!(heard(&mut attempt).await, None);
    all.reported(&report(peer(1), IcmpCause::TooBig(1227)));
    assert_eq!(heard(&mut attempt).await.unwrap().cause, Cause::Unreachable);
}

#[tokio::test]
async fn what_is_complete_is_not_overtaken() {
    let all = Arc::new(Unanswered::default());
    let mut attempt = all.begin(peer(1));
    all.reported(&report(peer(1), IcmpCause::NoRoute));
    assert_eq!(attempt.unless_ended(ready(7)).await, Ok(7));
    drop(attempt);
    assert!(all.lock().attempts.is_empty());
}
