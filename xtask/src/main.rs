//! The checks of this repository: `cargo xtask ci`, `cargo xtask tidy`, `cargo xtask bench`.
//!
//! | module | job |
//! | --- | --- |
//! | `ci` | every check, one step after another, with times and a summary |
//! | `tidy` | the house rules that neither the compiler nor clippy checks |
//! | `api` | the public surface of the libraries, item by item |
//! | `bench` | the tables of `docs/benchmarks.md` |
//! | `capi` | the library for C: built, installed, and its examples run |
//! | `python` | the package for Python: its wheel, and its tests |
//! | `differential` | what races decide here and in another revision |
//! | `sockets` | random calls on SCTP sockets, for as long as requested |
//! | `run` | starting programs and reading their output |

mod api;
mod bench;
mod capi;
mod ci;
mod differential;
mod python;
mod run;
mod sockets;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  ci [--only STEP]... [--skip STEP]... [--list]
                        every check that guards main, one after another
  tidy                  the house rules: dependencies, lengths, marks, purity
  api [--bless] [PACKAGE]...
                        what is public, held against the reviewed lists; or these lists, written anew
  bench http [--rounds N] [--quick] [--dry]
                        time to first byte beside other clients, into docs/benchmarks.md
  bench lab [--quick] [--dry]
                        one sweep on one machine, on executors and by shards, into docs/clusters.md
  bench python [--rounds N] [--quick] [--dry]
                        the package for Python beside other clients for it, into docs/benchmarks.md
  bench race [--dry]    instructions per operation of the race engine, into docs/benchmarks.md
  bench relay [--rounds N] [--quick] [--dry]
                        eyas proxy, serve --upstream and tunnel beside others, into docs/benchmarks.md
  bench sctp [--rounds N] [--quick] [--dry]
                        messages through SCTP beside other stacks, into docs/benchmarks.md
  bench sockets [--rounds N] [--quick] [--dry]
                        programs for the kernel's SCTP under eyas sctp run, into docs/benchmarks.md
  capi [--install PREFIX] [--dev]
                        the library for C, installed below a prefix; or else its examples, compiled, run
                        and watched by valgrind and the address sanitizer
  python [--build]      the wheel for Python with the command in it, into target/python/wheels, and its
                        tests; with --build the wheel alone
  differential --base REVISION [--worlds N] [--from N]
                        what races in random worlds decide, here and in another revision
  sockets [--minutes N] [--fuzz N]
                        random calls on SCTP sockets beside models of the kernel, 30 minutes of them, and
                        10 of what programs may say to who serves the sockets, with new seeds
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["ci", options @ ..] => ci::main(options),
        ["tidy"] => tidy::main(),
        ["api", options @ ..] => api::main(options),
        ["bench", options @ ..] => bench::main(options),
        ["capi", options @ ..] => capi::main(options),
        ["python", options @ ..] => python::main(options),
        ["differential", options @ ..] => differential::main(options),
        ["sockets", options @ ..] => sockets::main(options),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("no such command\n\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
