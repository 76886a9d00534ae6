//! Short runs: what the network must let through, and that the same seed repeats everything.

use super::run;
use crate::plan::Setup;

/// One path of 10 Mbit/s and 10 ms; what is added may replace nothing.
fn one_path(more: &str) -> Setup {
    let text = format!(
        "time = {{ warm_up = '5 s', duration = '10 s' }}
        path.A = {{ rate = '10 Mbit/s', delay = '10 ms' }}
        {more}"
    );
    toml::from_str(&text).unwrap()
}

const PUBLISHED: &str = "[association]\nprofile = 'pfldnet2010'\nbuffer = '64 KiB'\n";

#[test]
fn one_path_fills_its_link() {
    let setup = one_path(PUBLISHED);
    let result = run(&setup, 1);
    let share = result.bytes() as f64 * 8.0 / 10.0 / setup.ceiling();
    assert!((0.97..1.001).contains(&share), "{share}");
    // What is in the buffers is what is late: 64 KiB at 9.68 Mbit/s are 54 ms.
    let delay = result.mean_delay_ms();
    assert!((30.0..60.0).contains(&delay), "{delay} ms");
    assert!(result.longest_gap_ms < 1000.0 && result.events > 10_000);
}

#[test]
fn a_seed_repeats_everything_and_another_one_does_not() {
    let lossy = one_path(PUBLISHED).with_loss("1 %");
    assert_eq!(run(&lossy, 7), run(&lossy, 7));
    assert_ne!(run(&lossy, 7), run(&lossy, 8));
}

impl Setup {
    fn with_loss(mut self, part: &str) -> Self {
        for path in self.path.values_mut() {
            path.loss.probability = part.parse().unwrap();
        }
        self
    }
}

#[test]
fn a_rival_takes_its_share() {
    let setup = one_path("[rival.R]\npath = 'A'\nassociation.profile = 'pfldnet2010'");
    let result = run(&setup, 1);
    assert_eq!(result.rivals[0].name, "R");
    let all = (result.bytes() + result.rivals[0].bytes) as f64 * 8.0 / 10.0 / setup.ceiling();
    assert!((0.9..1.001).contains(&all), "{all}");
    assert!(result.rivals[0].bytes > 500_000);
}

#[test]
fn an_event_changes_the_link() {
    let half = "[[event]]\nat = '5 s'\npath = 'A'\nrate = '5 Mbit/s'\n";
    let result = run(&one_path(&format!("{half}{PUBLISHED}")), 1);
    let megabits = result.bytes() as f64 * 8.0 / 10.0 / 1e6;
    assert!((4.5..5.1).contains(&megabits), "{megabits}");
    let cut = "[[event]]\nat = '5 s'\npath = 'A'\nup = false\n";
    let result = run(&one_path(&format!("{cut}{PUBLISHED}")), 1);
    assert!(result.bytes() < 100_000 && result.longest_gap_ms > 9_000.0);
}
