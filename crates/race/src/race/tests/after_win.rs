//! The late switch, losers, re-tests, and DNS after the win.

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::{
    AttemptFailure, Evidence, EvidenceLevel, FailureCause, FailureDoubt, NetworkId, TrustContext,
};
use crate::io::RaceInput;
use crate::memory::{Memory, MemoryConfig};
use crate::policy::{LoserPolicy, Policy};
use crate::race::RaceSetup;
use crate::target::TargetHost;

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 90    tcp ◀── usable
/// 200   quic ◀── better
/// ```
#[test]
fn the_more_preferred_transport_continues_and_becomes_better() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.ready(1);
    assert_eq!(scene.until(200), ["90 learn tcp good at Security", "90 usable 1"]);
    scene.ready(0);
    let lines = ["200 learn quic good at Security", "200 better 0", "200 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn a_less_preferred_transport_never_becomes_better() {
    let mut scene = Scene::new(
        &[V4],
        Policy { losers: LoserPolicy::Finish(ms(500)), ..Policy::of_first_tries() },
    );
    scene.until(60);
    scene.ready(0);
    assert_eq!(scene.until(100), ["60 learn quic good at Security", "60 usable 0"]);
    scene.ready(1);
    let lines = ["100 learn tcp good at Security", "100 close 1 Lost", "100 finished"];
    assert_eq!(scene.until(60_000), lines);
}

/// ```text
/// 90    tcp ◀── usable
/// 3090  quic: silent since 0, remembered and closed
/// ```
#[test]
fn silence_after_the_win_is_remembered() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.ready(1);
    let lines = [
        "90 learn tcp good at Security",
        "90 usable 1",
        "3090 learn quic silent at Started",
        "3090 close 0 BudgetSpent",
        "3090 finished",
    ];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn an_upgrade_that_was_answered_has_until_the_deadline() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.ready(1);
    scene.answered(0);
    let lines = [
        "90 learn tcp good at Security",
        "90 usable 1",
        "30000 learn quic deadline at Answered",
        "30000 close 0 Deadline",
        "30000 finished",
    ];
    assert_eq!(scene.until(60_000), lines);
}

/// ```text
/// 0     quic 1 ──▶
/// 50    tcp 1 ──▶
/// 60    quic 1 ◀── answered, then stalls
/// 90    tcp 1 ◀── usable
/// 3060  quic 2 ──▶        in the background: quic 1 has stalled for long enough
/// ```
#[test]
fn a_stalled_upgrade_does_not_block_the_next_one() {
    let mut scene = Scene::new(&["192.0.2.1", "192.0.2.2"], Policy::of_first_tries());
    scene.until(60);
    scene.answered(0);
    scene.until(90);
    scene.ready(1);
    let lines =
        ["90 learn tcp good at Security", "90 usable 1", "3060 start 2 quic 192.0.2.2 background"];
    assert_eq!(scene.until(3_100), lines);
    scene.ready(2);
    let lines =
        ["3100 learn quic good at Security", "3100 better 2", "3100 close 0 Lost", "3100 finished"];
    assert_eq!(scene.until(60_000), lines);
}

/// ```text
/// 0     v6 ──▶
/// 250   v4 ──▶
/// 300   v4 ◀── usable; v6, unanswered for 300 ms, continues
/// 3300  v6: silent, remembered and closed
/// ```
#[test]
fn an_unreachable_address_is_remembered() {
    let policy = Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() };
    let mut scene = Scene::new(&[V6, V4], policy);
    scene.until(300);
    scene.ready(1);
    let lines = [
        "300 learn tcp good at Security",
        "300 usable 1",
        "3300 learn tcp silent at Started",
        "3300 close 0 BudgetSpent",
        "3300 finished",
    ];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn an_address_that_answers_late_is_closed_at_once() {
    let policy = Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() };
    let mut scene = Scene::new(&[V6, V4], policy);
    scene.until(300);
    scene.ready(1);
    scene.until(400);
    scene.answered(0);
    assert_eq!(scene.until(60_000), ["400 close 0 Lost", "400 finished"]);
}

#[test]
fn nothing_starts_at_the_deadline() {
    let policy = Policy { deadline: ms(1_000), ..Policy::of_first_tries() };
    let mut scene = Scene::new(&["192.0.2.1", "192.0.2.2"], policy);
    scene.until(90);
    scene.ready(1);
    scene.until(90);
    assert_eq!(scene.until(60_000), ["1000 close 0 Deadline", "1000 finished"]);
}

/// The caller ends the race after 60 ms: a server that completed TCP and TLS within 10 ms and has
/// not answered one QUIC packet in 60 ms is silent.
#[test]
fn a_race_ended_early_still_learns_silence() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(60);
    scene.input(RaceInput::Ready { id: crate::io::AttemptId(1), alpn: None, rtt: Some(ms(4)) });
    scene.until(60);
    scene.input(RaceInput::Cancel);
    let lines = ["60 learn quic silent at Started", "60 close 0 Cancelled", "60 finished"];
    assert_eq!(scene.until(60_000), lines);
}

/// What is learnt from a run that ends `done` ms after the start, and which transports the next run
/// starts first, `later` ms after it.
fn after_a_run_that_ends(done: u64, later: u64) -> (Option<FailureDoubt>, Vec<String>) {
    use crate::io::{AttemptId, RaceOutput};
    let mut memory = Memory::new(MemoryConfig::default());
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(60);
    let rtt = Some(ms(4));
    scene.input(RaceInput::Ready { id: AttemptId(1), alpn: None, rtt });
    scene.until(60);
    memory.learn(
        &Evidence { at: EPOCH + ms(60), rtt, ..good(Transport::Tcp) },
        &TrustContext::default(),
    );
    scene.until(done);
    let end = EPOCH + ms(done);
    scene.race.handle_input(end, RaceInput::Cancel);
    let mut doubt = None;
    while let output @ (RaceOutput::Learn(_) | RaceOutput::Close { .. } | RaceOutput::Finished) =
        scene.race.poll_output(end)
    {
        if let RaceOutput::Learn(evidence) = output {
            memory.learn(&evidence, &TrustContext::default());
            doubt = evidence.doubt;
        }
    }
    let view = memory.view(
        &NetworkId("home".into()),
        &target().host,
        &TrustContext::default(),
        end + ms(later),
    );
    let race = crate::race::Race::new(
        RaceSetup { view, ..setup(Policy::of_first_tries()) },
        end + ms(later),
    );
    let mut next = Scene::resumed(race, end + ms(later));
    next.answer(&[V4]);
    (doubt, next.starts_of_a_race_over_tcp())
}

/// A short run proves little, but the next one still goes straight to TCP; half a minute later QUIC
/// is tried again. A run that outlasted the second Initial proves more.
#[test]
fn silence_that_was_cut_short_counts_for_30_seconds() {
    let only_tcp = ["tcp"].map(str::to_owned).to_vec();
    let retested = ["tcp", "quic"].map(str::to_owned).to_vec();
    let doubt = Some(FailureDoubt::CutShort);
    assert_eq!(after_a_run_that_ends(60, 10), (doubt, only_tcp.clone()));
    assert_eq!(after_a_run_that_ends(900, 29_000), (doubt, only_tcp.clone()));
    assert_eq!(after_a_run_that_ends(900, 31_000), (doubt, retested));
    assert_eq!(after_a_run_that_ends(1_100, 31_000), (None, only_tcp));
}

#[test]
fn silence_shorter_than_a_round_trip_does_not_count() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(60);
    scene.ready(1);
    scene.until(60);
    scene.input(RaceInput::Cancel);
    assert_eq!(scene.until(60_000), ["60 close 0 Cancelled", "60 finished"]);
}

#[test]
fn losers_may_finish_to_give_evidence() {
    let policy = Policy {
        transports: vec![Transport::Tcp],
        losers: LoserPolicy::Finish(ms(500)),
        ..Policy::of_first_tries()
    };
    let mut scene = Scene::new(&["192.0.2.1", "192.0.2.2", "192.0.2.3"], policy);
    scene.until(550);
    scene.ready(2);
    scene.until(600);
    scene.fails(0, FailureCause::Refused);
    let lines = ["600 learn tcp refused at Started", "1050 close 1 BudgetSpent", "1050 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn more_than_one_switch_is_possible() {
    let transports = vec![Transport::Quic, Transport::Mptcp, Transport::Tcp];
    let policy =
        Policy { transports: transports.clone(), simultaneous: true, ..Policy::of_first_tries() };
    let mut setup = setup(policy);
    setup.target.service = crate::target::TargetService::Plain { transports, alpn: Vec::new() };
    let mut scene = Scene::with(setup, &[V4]);
    let starts = scene.until(0);
    let id = |transport: &str| {
        let is_over = |line: &&String| line.contains(&format!(" {transport} "));
        starts.iter().find(is_over).unwrap().split(' ').nth(2).unwrap().parse::<u32>().unwrap()
    };
    let mut lines = Vec::new();
    for (at, transport) in [(10, "tcp"), (20, "mptcp"), (30, "quic")] {
        lines.extend(scene.until(at));
        scene.ready(id(transport));
    }
    lines.extend(scene.until(30));
    lines.retain(|line| line.contains("usable") || line.contains("better"));
    let expected = [
        format!("10 usable {}", id("tcp")),
        format!("20 better {}", id("mptcp")),
        format!("30 better {}", id("quic")),
    ];
    assert_eq!(lines, expected);
}

/// A setup that remembers these outcomes, each with its age in minutes.
fn remembering(outcomes: &[(Transport, Option<FailureCause>, u64)]) -> RaceSetup {
    let mut memory = Memory::new(MemoryConfig::default());
    let host = TargetHost::Name("a.test".into());
    for (transport, cause, minutes) in outcomes {
        memory.learn(
            &Evidence {
                at: EPOCH - core::time::Duration::from_mins(*minutes),
                network: NetworkId("home".into()),
                host: host.clone(),
                candidate: candidate(*transport, V4),
                level: if cause.is_some() {
                    EvidenceLevel::Started
                } else {
                    EvidenceLevel::Security
                },
                failure: cause.map(|cause| AttemptFailure::new(cause, EvidenceLevel::Started, "")),
                doubt: None,
                rtt: None,
                sent_again: None,
            },
            &TrustContext::default(),
        );
    }
    let view = memory.view(&NetworkId("home".into()), &host, &TrustContext::default(), EPOCH);
    RaceSetup { view, ..setup(Policy::of_first_tries()) }
}

/// ```text
/// 0     tcp ──▶            quic failed 2 min ago: it is not even tried
/// 30    tcp ◀── usable
/// ```
#[test]
fn a_recent_failure_is_not_retested() {
    let setup =
        remembering(&[(Transport::Quic, Some(FailureCause::Silent), 2), (Transport::Tcp, None, 2)]);
    let mut scene = Scene::with(setup, &[V4]);
    assert_eq!(scene.until(30), ["0 start 0 tcp 192.0.2.1"]);
    scene.ready(0);
    let lines = ["30 learn tcp good at Security", "30 usable 0", "30 finished"];
    assert_eq!(scene.until(60_000), lines);
}

//= hev3 §6
//# after a success untried candidates are dropped, but for one retest of each kind
/// ```text
/// 0     tcp ──▶            quic failed 6 min ago: the back-off is over
/// 30    tcp ◀── usable
/// 30    quic ──▶           in the background
/// 80    quic ◀── better
/// ```
#[test]
fn what_failed_earlier_is_retested_beside_the_winner() {
    let setup =
        remembering(&[(Transport::Quic, Some(FailureCause::Silent), 6), (Transport::Tcp, None, 6)]);
    let mut scene = Scene::with(setup, &[V4]);
    assert_eq!(scene.until(30), ["0 start 0 tcp 192.0.2.1"]);
    scene.ready(0);
    let lines =
        ["30 learn tcp good at Security", "30 usable 0", "30 start 1 quic 192.0.2.1 background"];
    assert_eq!(scene.until(80), lines);
    scene.ready(1);
    let lines = ["80 learn quic good at Security", "80 better 1", "80 finished"];
    assert_eq!(scene.until(60_000), lines);
}

/// ```text
/// 2     tcp ◀── usable     quic is due 10 ms after the start of tcp
/// 10    quic ──▶           in the background; nothing more is due
/// ```
#[test]
fn a_driver_can_see_that_a_retest_is_due() {
    let setup =
        remembering(&[(Transport::Quic, Some(FailureCause::Silent), 6), (Transport::Tcp, None, 6)]);
    let mut scene = Scene::with(setup, &[V4]);
    scene.until(2);
    assert_eq!(scene.race.next_background_start(), None);
    scene.ready(0);
    scene.until(2);
    assert!(scene.race.next_background_start().is_some());
    assert_eq!(scene.until(10), ["10 start 1 quic 192.0.2.1 background"]);
    assert_eq!(scene.race.next_background_start(), None);
}

#[test]
fn an_unanswered_retest_is_a_failure_again() {
    let setup =
        remembering(&[(Transport::Quic, Some(FailureCause::Silent), 6), (Transport::Tcp, None, 6)]);
    let mut scene = Scene::with(setup, &[V4]);
    scene.until(30);
    scene.ready(0);
    scene.until(30);
    let lines = ["3030 learn quic silent at Started", "3030 close 1 BudgetSpent", "3030 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn what_failed_is_tried_after_all_when_nothing_else_is_left() {
    let setup = remembering(&[(Transport::Quic, Some(FailureCause::Silent), 2)]);
    let mut scene = Scene::with(setup, &[V4]);
    scene.until(30);
    scene.fails(0, FailureCause::Refused);
    let lines = ["30 learn tcp refused at Started", "30 start 1 quic 192.0.2.1"];
    assert_eq!(scene.until(40), lines);
    scene.ready(1);
    assert!(scene.until(40).contains(&"40 usable 1".to_owned()));
}

#[test]
fn a_winner_that_fails_before_the_first_byte_is_a_failure() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.ready(1);
    scene.until(90);
    scene.fails(1, FailureCause::Reset);
    assert_eq!(scene.until(90), ["90 learn tcp reset at Security"]);
}

#[test]
fn the_first_byte_is_remembered_too() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.ready(1);
    scene.until(90);
    scene.reaches(1, EvidenceLevel::FirstByte, None);
    assert_eq!(scene.until(90), ["90 learn tcp good at FirstByte"]);
}

/// ```text
/// 10    tcp over IPv6 ◀── established, then stalls
/// 270   tcp over IPv4 ◀── the first byte: usable
/// 3270  tcp over IPv6: silent beside the winner, remembered and closed
/// ```
#[test]
fn a_connected_but_silent_peer_is_remembered_if_another_one_replied() {
    let transports = alloc::vec![Transport::Tcp];
    let policy =
        Policy { transports, win_at: EvidenceLevel::FirstByte, ..Policy::of_first_tries() };
    let mut scene = Scene::new(&[V6, V4], policy);
    scene.until(10);
    scene.reaches(0, EvidenceLevel::Transport, None);
    scene.until(270);
    scene.reaches(1, EvidenceLevel::FirstByte, None);
    scene.ready(1);
    let lines = [
        "270 learn tcp good at FirstByte",
        "270 usable 1",
        "3270 learn tcp deadline at Transport",
        "3270 close 0 BudgetSpent",
        "3270 finished",
    ];
    assert_eq!(scene.until(60_000), lines);
}

/// As above, but it replies after all.
#[test]
fn a_peer_that_replies_after_the_winner_is_not_silent() {
    let transports = alloc::vec![Transport::Tcp];
    let policy =
        Policy { transports, win_at: EvidenceLevel::FirstByte, ..Policy::of_first_tries() };
    let mut scene = Scene::new(&[V6, V4], policy);
    scene.until(10);
    scene.reaches(0, EvidenceLevel::Transport, None);
    scene.until(270);
    scene.reaches(1, EvidenceLevel::FirstByte, None);
    scene.ready(1);
    scene.until(500);
    scene.reaches(0, EvidenceLevel::FirstByte, None);
    assert_eq!(scene.until(60_000), ["500 close 0 Lost", "500 finished"]);
}
