//! CPU and memory per connection, compared with plain hyper and quinn: the cost of the race, the pool and the memory when
//! there is nothing to race; and with eyas that offers X25519 alone. noq instead of quinn is shown as well, to see what
//! another QUIC implementation would change.

use std::fmt::Write as _;
use std::time::Duration;

use crate::arena::{Arena, HEALTHY};
use crate::process::{cpu_time, resident};
use crate::programs::{NOQ, PLAIN, Programs, X25519};
use crate::rival::Rival;

/// Connections of one measurement of CPU time.
const CONNECTIONS: u32 = 1000;
/// The same with `--quick`.
const QUICK_CONNECTIONS: u32 = 300;
/// Connections of one batch that is kept open; memory is measured with one batch and with two.
const BATCH: u32 = 500;
/// How long a race still learns after it has been won: `Policy::dns_after_win`, and more.
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Measurements of each kind, in turns; the smallest counts, because disturbances only add.
const TURNS: usize = 3;
/// The same with `--quick`.
const QUICK_TURNS: usize = 1;
/// The maximum CPU time and memory of eyas, relative to the plain libraries; the former also relative to eyas with X25519.
const MAX_CPU_TIME: f64 = 1.10;
const MAX_MEMORY: f64 = 1.20;
const MODES: [&str; 3] = ["h1", "h2", "h3"];

/// The cost of one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// CPU time of connecting, one request and closing, in milliseconds.
    cpu_time: f64,
    /// Resident memory while it is open and idle, in KiB.
    memory: f64,
}

/// The costs of one version of HTTP, for eyas and for the plain libraries.
pub(crate) struct Row {
    mode: &'static str,
    eyas: Cost,
    x25519: Cost,
    plain: Cost,
    /// Only for HTTP/3.
    noq: Option<Cost>,
}

/// CPU time or memory.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    unit: &'static str,
    /// The maximum of eyas, relative to the plain libraries.
    most: f64,
    figure: fn(&Cost) -> f64,
}

/// Measures the clients in turn.
pub(crate) fn measure(programs: &Programs, arena: &Arena, quick: bool) -> Result<Vec<Row>, String> {
    let (turns, connections) =
        if quick { (QUICK_TURNS, QUICK_CONNECTIONS) } else { (TURNS, CONNECTIONS) };
    let mut rows = Vec::new();
    for mode in MODES {
        println!("cost of {mode}");
        let mut eyas = Vec::new();
        let mut x25519 = Vec::new();
        let mut plain = Vec::new();
        let mut noq = Vec::new();
        for _ in 0..turns {
            // New processes, because memory that an allocator has retained would hide new allocations.
            eyas.push(measure_client(&mut programs.start_eyas(arena)?, mode, connections)?);
            x25519.push(measure_client(&mut programs.start_x25519(arena)?, mode, connections)?);
            plain.push(measure_client(&mut programs.start_plain(arena)?, mode, connections)?);
            let mut other = programs.start_noq(arena)?;
            if other.is_for(mode) {
                noq.push(measure_client(&mut other, mode, connections)?);
            }
        }
        let noq = (!noq.is_empty()).then(|| smallest(&noq));
        let (eyas, x25519, plain) = (smallest(&eyas), smallest(&x25519), smallest(&plain));
        rows.push(Row { mode, eyas, x25519, plain, noq });
    }
    Ok(rows)
}

fn measure_client(client: &mut Rival, mode: &str, connections: u32) -> Result<Cost, String> {
    // The first connections create what all later ones share.
    client.query(&format!("many {mode} 20 {}", HEALTHY.many_urls()))?;
    // Memory that the first batch needed to connect is reused by the second, as in a long-running
    // program: the difference is the memory of open, idle connections.
    let mut after = [0.0; 2];
    for resident_after in &mut after {
        client.query(&format!("hold {mode} {BATCH} {}", HEALTHY.many_urls()))?;
        std::thread::sleep(SETTLE_TIME);
        *resident_after = resident(client.id())?;
    }
    let memory = (after[1] - after[0]) / f64::from(BATCH);
    client.query("drop")?;
    let before = cpu_time(client.id())?;
    client.query(&format!("many {mode} {connections} {}", HEALTHY.many_urls()))?;
    let cpu_time = (cpu_time(client.id())? - before) / f64::from(connections);
    Ok(Cost { cpu_time, memory })
}

fn smallest(costs: &[Cost]) -> Cost {
    let least = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::INFINITY, f64::min);
    Cost { cpu_time: least(|cost| cost.cpu_time), memory: least(|cost| cost.memory) }
}

const CPU_TIME: Kind =
    Kind { name: "CPU", unit: "ms", most: MAX_CPU_TIME, figure: |cost| cost.cpu_time };
const MEMORY: Kind =
    Kind { name: "memory", unit: "KiB", most: MAX_MEMORY, figure: |cost| cost.memory };

/// Returns tables of both costs of all clients, and whether the ratios hold.
pub(crate) fn tables(rows: &[Row]) -> [String; 2] {
    let mut text = format!(
        "| per connection | eyas | {PLAIN} | ratio | target | met | {NOQ} |\n\
         | --- | ---: | ---: | ---: | ---: | --- | ---: |\n"
    );
    for row in rows {
        for kind in [CPU_TIME, MEMORY] {
            let noq = row.noq.as_ref();
            let noq =
                noq.map_or("–".into(), |noq| format!("{:.2} {}", (kind.figure)(noq), kind.unit));
            let _ = writeln!(text, "{} {noq} |", kind.cells(row.mode, &row.eyas, &row.plain));
        }
    }
    let mut exchange = format!(
        "| key exchange per connection | X25519MLKEM768 | {X25519} | ratio | target | met |\n\
         | --- | ---: | ---: | ---: | ---: | --- |\n"
    );
    for row in rows {
        let label = format!("key exchange, {}", row.mode);
        let _ = writeln!(exchange, "{}", CPU_TIME.cells(&label, &row.eyas, &row.x25519));
    }
    [text, exchange]
}

impl Kind {
    /// Returns the beginning of a row: both costs, their ratio, and whether it is low enough.
    fn cells(&self, mode: &str, ours: &Cost, theirs: &Cost) -> String {
        let Self { name, unit, most, figure } = self;
        let (ours, theirs) = (figure(ours), figure(theirs));
        let ratio = ours / theirs;
        let holds = if ratio <= *most { "yes" } else { "**no**" };
        format!(
            "| {mode} {name} | {ours:.2} {unit} | {theirs:.2} {unit} | {ratio:.2} | ≤ {most:.2} | {holds} |"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_compared_with_its_limit() {
        let cost = |cpu_time, memory| Cost { cpu_time, memory };
        let row = Row {
            mode: "h3",
            eyas: cost(1.0, 30.0),
            x25519: cost(0.8, 30.0),
            plain: cost(1.0, 20.0),
            noq: Some(cost(1.5, 19.0)),
        };
        let [text, exchange] = tables(&[row]);
        assert!(
            exchange
                .contains("| key exchange, h3 CPU | 1.00 ms | 0.80 ms | 1.25 | ≤ 1.10 | **no** |")
        );
        assert!(text.contains("| h3 CPU | 1.00 ms | 1.00 ms | 1.00 | ≤ 1.10 | yes | 1.50 ms |"));
        let memory = "| h3 memory | 30.00 KiB | 20.00 KiB | 1.50 | ≤ 1.20 | **no** | 19.00 KiB |";
        assert!(text.contains(memory), "{text}");
    }
}
