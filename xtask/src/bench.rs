//! `cargo xtask bench`: the tables of `docs/benchmarks.md`, each with the command that made it.
//!
//! | module | job |
//! | --- | --- |
//! | `http` | time to first byte beside other clients, in interleaved rounds |
//! | `python` | the package for Python beside other clients for it, likewise |
//! | `lab` | one sweep on one machine, on executors and by shards, into `docs/clusters.md` |
//! | `cost` | CPU and memory per connection beside plain hyper and quinn, and noq |
//! | `verdict` | whether the expected ratios hold, in words |
//! | `race` | instructions per operation of the race engine |
//! | `sctp` | messages through an association beside other stacks, in interleaved rounds |
//! | `sockets` | programs for the kernel's SCTP under `eyas sctp run`, beside usrsctp's API and our driver |
//! | `sim` | what a simulated second costs beside ns-3 |
//! | `arena` | a network namespace with Caddy in it, and packet filters |
//! | `programs` | where the programs are, how they are installed and started |
//! | `versions` | which versions were measured |
//! | `relay` | `eyas proxy`, `eyas serve --upstream` and `eyas tunnel` compared with similar programs |
//! | `server` | a program that listens, as long as something is measured |
//! | `rival` | a client that answers rounds on its standard output |
//! | `statistics` | median and 95th percentile |
//! | `front` | the part of the first table that is in the README |
//! | `page` | writing between the marks of a page; machine and commit |

mod arena;
mod cost;
mod front;
mod http;
mod lab;
mod page;
mod programs;
mod python;
mod race;
mod relay;
mod rival;
mod sctp;
mod server;
mod sim;
mod sockets;
mod statistics;
mod verdict;
mod versions;

/// Runs the benchmark that the options name.
pub(crate) fn main(options: &[&str]) -> Result<(), String> {
    match options {
        ["http", rest @ ..] => http::main(rest),
        ["lab", rest @ ..] => lab::main(rest),
        ["python", rest @ ..] => python::main(rest),
        ["race", rest @ ..] => race::main(rest),
        ["relay", rest @ ..] => relay::main(rest),
        ["sctp", rest @ ..] => sctp::main(rest),
        ["sim", rest @ ..] => sim::main(rest),
        ["sockets", rest @ ..] => sockets::main(rest),
        _ => Err("the benchmarks are http, lab, python, race, relay, sctp, sim and sockets".into()),
    }
}

/// The options that the benchmarks take.
struct Options {
    /// Rounds to run; by default the benchmark's own number.
    rounds: Option<usize>,
    /// Print the tables and leave the page as it is.
    dry: bool,
    /// Measure little, only to see that everything works; not for the page.
    quick: bool,
    /// Only install and build what is measured, so that the machine is quiet afterwards.
    build: bool,
    /// Passed by the benchmark to itself: the namespaces exist.
    inside: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options =
            Self { rounds: None, dry: false, quick: false, build: false, inside: false };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match *word {
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
    fn options() {
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
