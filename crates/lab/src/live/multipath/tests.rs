use std::time::Duration;

use super::meter::{PARTS, PayloadMeter};
use crate::situation::live::MultipathStack;
use crate::situation::live::multipath::tests::setup;

const MS: Duration = Duration::from_millis(1);

#[test]
fn parts_and_gaps_are_those_of_the_measured_time() {
    let mut meter = PayloadMeter::new(100 * MS, 1200 * MS);
    // The first message arrives at 50 ms: 150 to 1,350 ms are measured, in parts of 100 ms.
    meter.record(50 * MS, 1);
    meter.record(149 * MS, 1_000_000);
    meter.record(200 * MS, 12_500);
    meter.record(600 * MS, 25_000);
    meter.record(1349 * MS, 12_500);
    meter.record(1350 * MS, 1_000_000);
    meter.end();
    let rates = meter.rates().map(|rate| (rate * 1e6).round() / 1e6);
    assert_eq!((rates[0], rates[4], rates[PARTS - 1]), (1.0, 2.0, 1.0));
    assert_eq!(rates.iter().sum::<f64>(), 4.0);
    assert_eq!(meter.longest_gap(), 749 * MS);
}

#[test]
fn silence_up_to_the_end_is_a_gap() {
    let mut meter = PayloadMeter::new(Duration::ZERO, 1000 * MS);
    meter.record(10 * MS, 1);
    meter.record(110 * MS, 1);
    meter.end();
    assert_eq!(meter.longest_gap(), 900 * MS);
}

#[test]
fn the_simulator_fills_the_same_columns() {
    let mut setup = setup("dies = 'B'");
    setup.stack = MultipathStack::Simulator;
    let columns = super::simulated::run(&setup, 1).columns;
    assert!(columns["share"][0] > 50.0 && columns["share"][0] <= 100.0, "{columns:?}");
    // Acknowledgements: some percent of the data.
    assert!((0.05..2.0).contains(&columns["back-A"][0]), "{columns:?}");
    assert!(columns["on-A"][0] > 5.0 && columns["gap"][0] > 0.0, "{columns:?}");
}
