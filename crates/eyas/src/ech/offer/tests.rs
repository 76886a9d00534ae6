use rustls::PeerIncompatible;
use rustls::internal::msgs::codec::{Codec as _, Reader};

use super::super::configs::tests::{PUBLISHED, UNKNOWN_VERSION};
use super::*;

const POLICIES: [EchPolicy; 3] = [EchPolicy::Off, EchPolicy::Auto, EchPolicy::Required];

/// What the record of a server, or what it sends after a rejection, may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configs {
    Nothing,
    Usable,
    /// Of a version that is not known here.
    Unknown,
    Malformed,
}

const ALL_CONFIGS: [Configs; 4] =
    [Configs::Nothing, Configs::Usable, Configs::Unknown, Configs::Malformed];

impl Configs {
    fn record(self) -> Option<Vec<u8>> {
        match self {
            Self::Nothing => None,
            Self::Usable => {
                Some(PUBLISHED.parse::<EchConfigList>().expect("a list").as_bytes().into())
            }
            Self::Unknown => Some(UNKNOWN_VERSION.to_vec()),
            Self::Malformed => Some(vec![1, 2, 3]),
        }
    }

    /// Returns the error of a rejection with these.
    fn rejection(self) -> rustls::Error {
        let configs = self.record().and_then(|list| Vec::read(&mut Reader::init(&list)).ok());
        PeerIncompatible::ServerRejectedEncryptedClientHello(configs).into()
    }
}

fn begin(policy: EchPolicy, record: Configs) -> Result<EchAttempt, AttemptFailure> {
    let parameters = EchParameters { policy, given: None };
    EchAttempt::begin(Security::Tls, record.record().as_deref(), &parameters, false)
}

fn is_clear(attempt: &EchAttempt) -> bool {
    !matches!(attempt.offer(), EchOffer::Encrypted(..))
}

/// Runs an attempt in a world: with this policy, this record, and a server that answers each ClientHello so.
fn check_world(policy: EchPolicy, security: Security, record: Configs, answers: &[Configs]) {
    let world = format!("{policy:?} {security} {record:?} {answers:?}");
    let parameters = EchParameters { policy, given: None };
    let bytes = record.record();
    let Ok(mut attempt) = EchAttempt::begin(security, bytes.as_deref(), &parameters, true) else {
        return;
    };
    let has_no_ech =
        record == Configs::Nothing || (record == Configs::Unknown && security == Security::Tls);
    let (mut turned_off, mut answers, mut connections) = (false, answers.iter(), 0);
    loop {
        connections += 1;
        assert!(connections <= 2, "{world}");
        let may_be_clear =
            policy == EchPolicy::Off || (policy == EchPolicy::Auto && (has_no_ech || turned_off));
        assert!(!is_clear(&attempt) || may_be_clear, "{world}");
        // Only what was offered is rejected.
        let Some(answer) = answers.next().filter(|_| !is_clear(&attempt)) else { return };
        attempt.observe(&answer.rejection());
        turned_off = *answer != Configs::Usable;
        match attempt.advance() {
            Ok(again) => assert!(again, "{world}"),
            Err(failure) => {
                assert_eq!(failure.cause, FailureCause::Ech, "{world}");
                return;
            }
        }
    }
}

/// In no world does a name leak that must not, and in none does an attempt not end.
#[test]
fn in_each_world_a_name_is_sent_in_the_clear_only_where_it_may_be() {
    for policy in POLICIES {
        for security in [Security::Tls, Security::Dtls] {
            for record in ALL_CONFIGS {
                check_world(policy, security, record, &[]);
                for first in ALL_CONFIGS {
                    check_world(policy, security, record, &[first]);
                    for second in ALL_CONFIGS {
                        check_world(policy, security, record, &[first, second]);
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_offered_first_follows_policy_and_record() {
    for (policy, record, expected) in [
        (EchPolicy::Off, Configs::Usable, "nothing"),
        (EchPolicy::Off, Configs::Malformed, "nothing"),
        (EchPolicy::Auto, Configs::Nothing, "nothing"),
        (EchPolicy::Auto, Configs::Usable, "encrypted"),
        (EchPolicy::Auto, Configs::Unknown, "nothing"),
        (EchPolicy::Auto, Configs::Malformed, "the ECH configuration of its record is malformed"),
        (EchPolicy::Required, Configs::Nothing, "it has no configuration"),
        (EchPolicy::Required, Configs::Usable, "encrypted"),
        (EchPolicy::Required, Configs::Unknown, "it has no configuration"),
        (
            EchPolicy::Required,
            Configs::Malformed,
            "the ECH configuration of its record is malformed",
        ),
    ] {
        let begun = match begin(policy, record) {
            Ok(attempt) => match attempt.offer() {
                EchOffer::Nothing => "nothing".to_owned(),
                EchOffer::Grease => "grease".to_owned(),
                EchOffer::Encrypted(..) => "encrypted".to_owned(),
            },
            Err(failure) => failure.detail,
        };
        assert!(begun.contains(expected), "{policy:?} {record:?}: {begun}");
    }
    let unknown = begin(EchPolicy::Auto, Configs::Unknown).expect("an attempt");
    assert!(
        unknown.note().is_some_and(|note| note.contains("not known"))
            && unknown.outcome().is_none()
    );
}

#[test]
fn grease_goes_with_tls13_alone() {
    let begin = |alone| EchAttempt::begin(Security::Tls, None, &EchParameters::default(), alone);
    let pretended = begin(true).expect("an attempt");
    assert!(matches!(pretended.offer().mode(), Some(EchMode::Grease(_))));
    assert_eq!(pretended.outcome(), Some(EchOutcome::Grease));
    assert!(begin(false).expect("an attempt").offer().mode().is_none());
}

#[test]
fn configurations_of_the_caller_come_before_those_of_the_record() {
    let given: EchConfigList = PUBLISHED.parse().expect("a list");
    let parameters = EchParameters { policy: EchPolicy::Required, given: Some(given.clone()) };
    for record in [Configs::Nothing, Configs::Malformed, Configs::Unknown] {
        let record = record.record();
        let begun = EchAttempt::begin(Security::Tls, record.as_deref(), &parameters, false);
        let outcome = begun.expect("an attempt").outcome();
        assert_eq!(outcome, Some(EchOutcome::Accepted(given.clone())));
    }
}

//= rfc9849 §6.1.6
//# "retry_configs" are used once: what answers a connection with them brings no third one
#[test]
fn other_configurations_of_the_server_are_tried_once() {
    let mut attempt = begin(EchPolicy::Auto, Configs::Usable).expect("an attempt");
    assert_eq!(attempt.advance(), Ok(false), "nothing was rejected");
    attempt.observe(&rustls::Error::DecryptError);
    assert_eq!(attempt.advance(), Ok(false), "another error");
    attempt.observe(&Configs::Usable.rejection());
    assert_eq!(attempt.advance(), Ok(true));
    assert!(attempt.note().is_some_and(|note| note.contains("replaced")));
    attempt.observe(&Configs::Usable.rejection());
    let failure = attempt.advance().expect_err("rejected twice");
    assert_eq!((failure.cause, failure.reached), (FailureCause::Ech, EvidenceLevel::Transport));
}

#[test]
fn ech_that_is_turned_off_is_left_out_unless_it_is_required() {
    for answer in [Configs::Nothing, Configs::Unknown] {
        let mut attempt = begin(EchPolicy::Auto, Configs::Usable).expect("an attempt");
        attempt.observe(&answer.rejection());
        assert_eq!(attempt.advance(), Ok(true));
        assert_eq!(attempt.outcome(), Some(EchOutcome::TurnedOff));
        assert!(attempt.note().is_some_and(|note| note.contains("in the clear")));
        let mut attempt = begin(EchPolicy::Required, Configs::Usable).expect("an attempt");
        attempt.observe(&answer.rejection());
        let failure = attempt.advance().expect_err("it is required");
        assert!(failure.detail.contains("which is required"), "{failure:?}");
    }
}

#[test]
fn names_are_not_sent_to_dtls_servers_that_ask_for_ech() {
    for (policy, record, reached) in [
        (EchPolicy::Off, Configs::Usable, true),
        (EchPolicy::Auto, Configs::Nothing, true),
        (EchPolicy::Auto, Configs::Usable, false),
        (EchPolicy::Required, Configs::Nothing, false),
    ] {
        let parameters = EchParameters { policy, given: None };
        let begun =
            EchAttempt::begin(Security::Dtls, record.record().as_deref(), &parameters, true);
        assert_eq!(begun.is_ok(), reached, "{policy:?} {record:?}");
    }
}
