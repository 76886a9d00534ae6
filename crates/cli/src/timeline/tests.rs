//! Tests of pictures of races, as they appear in a terminal and in a pipe.

use eyas::race::evidence::EvidenceLevel;

use super::*;
use crate::terminal::{OutputStyle, columns};

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

const PLAIN: OutputStyle = OutputStyle { colour: false, unicode: true, width: 80 };

fn picture(timeline: &RaceTimeline, style: OutputStyle) -> String {
    let lines = draw(timeline, style);
    lines.iter().map(|line| line.to_text(style.colour) + "\n").collect()
}

fn lane(
    name: &str,
    started: u64,
    progress: &[(u64, EvidenceLevel)],
    ended: Option<u64>,
    end: LaneEnd,
) -> TimelineLane {
    TimelineLane {
        name: name.to_owned(),
        paint: if name.starts_with("quic") { Paint::Quic } else { Paint::Stream },
        started: millis(started),
        progress: progress.iter().map(|(at, level)| (millis(*at), *level)).collect(),
        ended: ended.map(millis),
        end,
        note: match end {
            LaneEnd::Won => format!("won after {} ms", ended.unwrap_or(0)),
            LaneEnd::TookOver => format!("took over at {} ms", ended.unwrap_or(0)),
            LaneEnd::Failed => "refused".to_owned(),
            LaneEnd::Ready => "ready, not used".to_owned(),
            LaneEnd::Closed => "not needed".to_owned(),
            LaneEnd::UnderWay => "under way".to_owned(),
        },
    }
}

fn udp_dropped() -> RaceTimeline {
    RaceTimeline {
        lanes: vec![
            lane("quic 127.0.0.1:8443", 0, &[], Some(2_000), LaneEnd::Closed),
            lane(
                "tcp  127.0.0.1:8443",
                50,
                &[
                    (51, EvidenceLevel::Answered),
                    (52, EvidenceLevel::Transport),
                    (58, EvidenceLevel::Security),
                ],
                Some(58),
                LaneEnd::Won,
            ),
        ],
    }
}

fn late_switch() -> RaceTimeline {
    RaceTimeline {
        lanes: vec![
            lane(
                "quic [2001:db8::1]:443",
                0,
                &[(240, EvidenceLevel::Answered)],
                Some(250),
                LaneEnd::TookOver,
            ),
            lane("quic 192.0.2.1:443", 60, &[], Some(61), LaneEnd::Failed),
            lane(
                "tcp  [2001:db8::1]:443",
                50,
                &[(90, EvidenceLevel::Answered), (91, EvidenceLevel::Transport)],
                Some(140),
                LaneEnd::Won,
            ),
            lane("tcp  192.0.2.1:443", 300, &[], None, LaneEnd::UnderWay),
        ],
    }
}

#[test]
fn silence_extends_to_the_edge() {
    insta::assert_snapshot!(picture(&udp_dropped(), PLAIN));
}

#[test]
fn the_late_switch_is_drawn() {
    insta::assert_snapshot!(picture(&late_switch(), PLAIN));
}

#[test]
fn ascii_draws_the_same() {
    insta::assert_snapshot!(picture(&late_switch(), OutputStyle { unicode: false, ..PLAIN }));
}

#[test]
fn colours_are_around_the_same_text() {
    let coloured = picture(&udp_dropped(), OutputStyle { colour: true, ..PLAIN });
    insta::assert_snapshot!(coloured.replace('\u{1b}', "ESC"));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((text, escape)) = rest.split_once('\u{1b}') {
        plain.push_str(text);
        rest = escape.split_once('m').expect("a colour ends with m").1;
    }
    plain.push_str(rest);
    assert_eq!(plain, picture(&udp_dropped(), PLAIN));
}

#[test]
fn every_width_is_respected() {
    for width in [60, 72, 80, 100, 110] {
        for timeline in [udp_dropped(), late_switch()] {
            for line in picture(&timeline, OutputStyle { width, ..PLAIN }).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn long_names_lose_their_middle() {
    let name = "sctp-udp [2001:db8:1234:5678:9abc:def0:1234:5678]:65535";
    let timeline = RaceTimeline { lanes: vec![lane(name, 0, &[], Some(1), LaneEnd::Failed)] };
    insta::assert_snapshot!(picture(&timeline, PLAIN));
}

#[test]
fn a_race_of_nothing_draws_nothing() {
    assert!(draw(&RaceTimeline::default(), PLAIN).is_empty());
}

#[test]
fn extreme_times_do_not_break_the_scale() {
    for nanos in [0, 1, 999, 1_000_000_000, u64::MAX / 2, u64::MAX] {
        let time = Duration::from_nanos(nanos);
        let mut only = lane("tcp x", 0, &[], Some(0), LaneEnd::Won);
        only.ended = Some(time);
        only.started = time / 2;
        let drawn = picture(&RaceTimeline { lanes: vec![only] }, PLAIN);
        assert!(drawn.contains('✔'), "{nanos}: {drawn}");
    }
}

#[test]
fn the_legend_fits() {
    for unicode in [true, false] {
        let text = legend(OutputStyle { unicode, ..PLAIN }).to_text(false);
        assert!(columns(&text) <= 80, "{text}");
    }
}

#[test]
fn a_picture_for_pages_shows_the_same_lanes() {
    insta::assert_snapshot!(svg("Race to <https://a.test/>", &late_switch()));
}

#[test]
fn a_picture_for_pages_keeps_within_its_edges() {
    for timeline in [udp_dropped(), late_switch(), RaceTimeline::default()] {
        let picture = svg("Race", &timeline);
        let places = picture.split(" x=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        for (x, _) in places {
            let x: f64 = x.parse().expect("a number");
            assert!((-9.0..=480.0).contains(&x), "{x} in {picture}");
        }
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}
