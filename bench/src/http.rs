//! `cargo eyas-bench http`: time to first byte with fresh connections, compared with other clients.

use crate::arena::{self, Arena, HEALTHY, WITHOUT_IPV6, WITHOUT_UDP};
use crate::options::Options;
use crate::programs::Programs;
use crate::scenario::{self, Scenario};
use crate::{cost, front, page, verdict};

/// The default number of rounds.
const ROUNDS: usize = 1000;
/// The number of rounds with `--quick`.
const QUICK_ROUNDS: usize = 40;
/// No fault; UDP dropped, first and later requests; everything over IPv6 dropped.
pub(crate) const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "h1", mode: "h1", site: &HEALTHY },
    Scenario { name: "h2", mode: "h2", site: &HEALTHY },
    Scenario { name: "h3", mode: "h3", site: &HEALTHY },
    Scenario { name: "race", mode: "race", site: &HEALTHY },
    Scenario { name: "no UDP, first", mode: "race", site: &WITHOUT_UDP },
    Scenario { name: "no UDP, later", mode: "later", site: &WITHOUT_UDP },
    Scenario { name: "no IPv6", mode: "race", site: &WITHOUT_IPV6 },
];

/// Runs the benchmark and writes its table. It runs in its own namespaces, which this program enters by
/// starting itself again.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    if !options.inside {
        Programs::install()?;
        if options.build {
            return Ok(());
        }
        return arena::enter(&[&["http", "--inside"], args].concat());
    }
    let rounds = options.rounds.unwrap_or(if options.quick { QUICK_ROUNDS } else { ROUNDS });
    let programs = Programs::installed();
    let versions = programs.versions()?;
    let arena = Arena::new(&programs.caddy, &programs.python)?;
    let mut rivals = programs.start_all(&arena)?;
    let results = scenario::measure(&mut rivals, &SCENARIOS, rounds);
    let names: Vec<_> = rivals.iter().map(|rival| rival.name).collect();
    drop(rivals);
    let costs = cost::measure(&programs, &arena, options.quick)?;
    let circumstances = page::circumstances(&format!("cargo eyas-bench http --rounds {rounds}"));
    let [costs, exchange] = cost::tables(&costs);
    let tables = [
        scenario::table(&names, &SCENARIOS, &results),
        versions.table(),
        verdict::text(&results),
        costs,
        exchange,
    ];
    let text = format!("{circumstances}\n{}", tables.join("\n"));
    page::publish("http", &text, options.dry)?;
    let front = format!("{}\n{circumstances}", front::table(&results, &versions));
    page::publish_in_readme("http", &front, options.dry)
}
