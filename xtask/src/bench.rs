//! `cargo xtask bench`: the tables beside `docs/results/benchmarks.md`, each with the command that created it.
//!
//! | module | purpose |
//! | --- | --- |
//! | `http` | time to first byte compared with other clients, in interleaved rounds |
//! | `python` | the Python package compared with other Python clients, in the same way |
//! | `bulk` | a large body compared with curl, and the system calls that it costs at each door |
//! | `lab` | one sweep on one machine, on executors and in shards |
//! | `cost` | CPU and memory per connection compared with plain hyper and quinn, and noq |
//! | `verdict` | whether the expected ratios hold, as text |
//! | `instructions` | instructions per operation of the race engine and of SCTP |
//! | `sctp` | messages over an association compared with other stacks, in interleaved rounds |
//! | `sockets` | programs for the kernel's SCTP under `eyas sctp run`, compared with usrsctp's API and our driver |
//! | `sim` | the cost of a simulated second compared with ns-3 |
//! | `arena` | a network namespace with Caddy in it, and packet filters |
//! | `programs` | where the programs are, and how they are installed and started |
//! | `versions` | which versions were measured |
//! | `relay` | `eyas proxy`, `eyas serve --upstream` and `eyas tunnel` compared with similar programs |
//! | `server` | a program that listens during a measurement |
//! | `rival` | a client that reports rounds on its standard output |
//! | `tables` | rounds by program and column, as tables |
//! | `statistics` | median and 95th percentile |
//! | `front` | the part of the first table that is in the README |
//! | `page` | writing tables beside the page, and between its marks; description of machine and commit |
//! | `report` | tables as CSV files, and what the page has of a report; pure |

mod arena;
mod bulk;
mod cost;
mod front;
mod http;
mod instructions;
mod lab;
mod page;
mod programs;
mod python;
mod relay;
mod report;
mod rival;
mod sctp;
mod server;
mod sim;
mod sockets;
mod statistics;
mod tables;
mod verdict;
mod versions;

/// Runs the benchmark that the options name.
pub(crate) fn main(options: &[&str]) -> Result<(), String> {
    match options {
        ["bulk", rest @ ..] => bulk::main(rest),
        ["http", rest @ ..] => http::main(rest),
        ["instructions", rest @ ..] => instructions::main(rest),
        ["lab", rest @ ..] => lab::main(rest),
        ["python", rest @ ..] => python::main(rest),
        ["relay", rest @ ..] => relay::main(rest),
        ["sctp", rest @ ..] => sctp::main(rest),
        ["sim", rest @ ..] => sim::main(rest),
        ["sockets", rest @ ..] => sockets::main(rest),
        _ => {
            let known = "bulk, http, instructions, lab, python, relay, sctp, sim and sockets";
            Err(format!("the benchmarks are {known}"))
        }
    }
}

/// The options that the benchmarks take.
struct Options {
    /// Rounds to run; the benchmark's own number if not given.
    rounds: Option<usize>,
    /// Print the tables without changing the page.
    dry: bool,
    /// Measure little, only to check that everything works; not for the page.
    quick: bool,
    /// Only install and build the programs, so that the machine is idle during measurements.
    build: bool,
    /// Passed by the benchmark to itself once the namespaces exist.
    inside: bool,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options =
            Self { rounds: None, dry: false, quick: false, build: false, inside: false };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match *arg {
                "--dry" => options.dry = true,
                "--build" => options.build = true,
                "--inside" => options.inside = true,
                // Quick measurements do not go into the page.
                "--quick" => (options.quick, options.dry) = (true, true),
                "--rounds" => {
                    let number = rest.next().and_then(|text| text.parse().ok());
                    let number = number.filter(|number| *number > 0);
                    options.rounds = Some(number.ok_or("--rounds needs a number above 0")?);
                }
                other => {
                    let known = "--rounds N, --quick, --dry and --build";
                    return Err(format!("bench takes {known}, not {other}"));
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let options = Options::parse(&["--rounds", "7", "--dry"]).unwrap();
        assert_eq!((options.rounds, options.dry), (Some(7), true));
        let options = Options::parse(&[]).unwrap();
        assert_eq!((options.rounds, options.dry), (None, false));
        let options = Options::parse(&["--quick"]).unwrap();
        assert!(options.quick && options.dry && !options.inside);
        assert!(Options::parse(&["--build"]).unwrap().build && !options.build);
        assert!(Options::parse(&["--rounds"]).is_err());
        assert!(Options::parse(&["--rounds", "0"]).is_err());
        assert!(Options::parse(&["--fast"]).is_err());
    }
}
