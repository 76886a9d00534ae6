use super::*;
use crate::situation::{BackEventSetup, SimulationSetup};

fn setup() -> RandomSetup {
    let text = "lines = 4\nrate = ['500 kbit/s', '200 Mbit/s']\nratio = 50
        delay = ['2 ms', '300 ms']\nqueue = ['2 ms', '1 s']
        loss = ['0 %', '0.1 %', '1 %']\nred = '25 %'\nchanging = '50 %'\nboth_ways = '33 %'
        message = [100, 65536]\npackets = 20000\nduration = ['4 s', '40 s']";
    toml::from_str(text).unwrap()
}

#[test]
fn networks_are_within_their_ranges_and_of_every_kind() {
    let networks: Vec<SimulationSetup> = (1..=1000).map(|seed| setup().draw(seed)).collect();
    for network in &networks {
        network.check().unwrap();
        for line in network.path.keys() {
            network.alone(line).used_paths().next().expect("the line");
        }
        for path in network.path.values() {
            let (there, back) = (path.rate().0, path.reversed().rate().0);
            assert!(there.max(back) <= 50 * there.min(back), "{path:?}");
            for rate in [there, back] {
                assert!((500_000..=200_000_000).contains(&rate), "{rate}");
            }
        }
    }
    let count = |is: &dyn Fn(&SimulationSetup) -> bool| networks.iter().filter(|it| is(it)).count();
    for lines in 2..=4 {
        assert!(count(&|it| it.path.len() == lines) > 250);
    }
    assert!((250..400).contains(&count(&|it| it.application.both_ways)));
    assert!(count(&|it| it.path.values().any(|path| path.joins.is_some())) > 80);
    for kind in [
        |event: &BackEventSetup| event.rate.is_some(),
        |event: &BackEventSetup| event.delay.is_some(),
        |event: &BackEventSetup| event.rate.is_none() && event.delay.is_none(),
    ] {
        assert!(count(&|it| it.event.iter().any(|event| kind(&event.back))) > 80);
    }
}

#[test]
fn a_network_reversed_twice_is_the_same() {
    for seed in 1..50 {
        let network = setup().draw(seed);
        let (once, twice) = (network.reversed(), network.reversed().reversed());
        assert_eq!(once.bound().phases.len(), network.bound().phases.len());
        assert_eq!(twice.reversed().describe(), once.describe());
    }
}
