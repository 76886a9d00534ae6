//! `cargo eyas-bench`: the tables beside `docs/results/benchmarks.md`, each with the command that created it.
//!
//! | module | purpose |
//! | --- | --- |
//! | `http` | time to first byte compared with other clients, in interleaved rounds |
//! | `python` | the Python package compared with other Python clients, in the same way |
//! | `bulk` | a large body compared with curl, and the system calls that it costs at each door |
//! | `h3` | HTTP/3 by eyas-h3 compared with h3, and with QUIC alone |
//! | `lab` | one sweep on one machine, on executors and in shards |
//! | `instructions` | instructions per operation of the race engine and of SCTP |
//! | `relay` | `eyas proxy`, `eyas serve --upstream` and `eyas tunnel` compared with similar programs |
//! | `sctp` | messages over an association compared with other stacks, in interleaved rounds |
//! | `sockets` | programs for the kernel's SCTP under `eyas sctp run`, compared with usrsctp's API and our driver |
//! | `sim` | the cost of a simulated second compared with ns-3 |
//! | `tls` | handshakes with the cryptography of eyas, compared with ring alone and aws-lc-rs; what a ClientHello of two packets costs over distances |
//! | `cost` | CPU and memory per connection compared with plain hyper and quinn, and noq |
//! | `scenario` | requests of all clients in all scenarios, in turn |
//! | `programs` | where the programs are, and how they are installed and started |
//! | `environment` | environments for programs in Python, and our wheel |
//! | `arena` | a network namespace with Caddy in it, and packet filters |
//! | `sides` | the two sides of an emulated link |
//! | `server` | a program that listens during a measurement |
//! | `rival` | a client that reports rounds on its standard output |
//! | `transfer` | what a program reports about messages over SCTP |
//! | `process` | the CPU time and memory of a process |
//! | `versions` | which versions were measured |
//! | `tables` | rounds by program and column, as tables |
//! | `statistics` | median and 95th percentile |
//! | `verdict` | whether the expected ratios hold, as text |
//! | `front` | the part of the first table that is in the README |
//! | `page` | writing tables beside the page, and between its marks; description of machine and commit |
//! | `report` | tables as CSV files, and what the page has of a report; pure |
//! | `options` | the options that the benchmarks take |
//! | `run` | starting programs and reading their output |
//!
//! `cargo xtask tidy` keeps their layers.

mod arena;
mod bulk;
mod cost;
mod environment;
mod front;
mod h3;
mod http;
mod instructions;
mod lab;
mod options;
mod page;
mod process;
mod programs;
mod python;
mod relay;
mod report;
mod rival;
mod run;
mod scenario;
mod sctp;
mod server;
mod sides;
mod sim;
mod sockets;
mod statistics;
mod tables;
mod tls;
mod transfer;
mod verdict;
mod versions;

use std::process::ExitCode;

const USAGE: &str = "\
cargo eyas-bench BENCHMARK [--rounds N] [--quick] [--dry] [--build]

  bulk          a large body and a small page compared with curl, and the system calls at each door
  h3            HTTP/3 by eyas-h3 compared with h3
  http          time to first byte compared with other clients
  instructions  instructions per operation of races and of SCTP
  lab           one sweep on one machine, on executors and in shards
  python        the Python package compared with other clients
  relay         eyas proxy, serve --upstream and tunnel compared with others
  sctp          messages over SCTP compared with other stacks
  sim           the cost of a simulated second compared with ns-3
  sockets       programs for the kernel's SCTP under eyas sctp run
  tls           handshakes with the cryptography of eyas, compared with others

  --rounds N    how often each program is measured, where the benchmark has rounds
  --quick       measure little, only to check that everything works; writes nothing
  --dry         print the tables without writing them
  --build       only install and build what is measured

Tables are written beside docs/results/benchmarks.md, which says what each benchmark does.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["bulk", options @ ..] => bulk::main(options),
        ["h3", options @ ..] => h3::main(options),
        ["http", options @ ..] => http::main(options),
        ["instructions", options @ ..] => instructions::main(options),
        ["lab", options @ ..] => lab::main(options),
        ["python", options @ ..] => python::main(options),
        ["relay", options @ ..] => relay::main(options),
        ["sctp", options @ ..] => sctp::main(options),
        ["sim", options @ ..] => sim::main(options),
        ["sockets", options @ ..] => sockets::main(options),
        ["tls", options @ ..] => tls::main(options),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("no such benchmark\n\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("eyas-bench: {message}");
            ExitCode::FAILURE
        }
    }
}
