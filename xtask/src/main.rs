//! The checks of this repository: `cargo xtask ci`, `cargo xtask tidy` and others.
//!
//! | module | purpose |
//! | --- | --- |
//! | `ci` | all checks, one step after another, with times and a summary |
//! | `tidy` | rules of this repository that neither the compiler nor clippy checks |
//! | `api` | the public API of the libraries, item by item |
//! | `names` | the shares of names that say little |
//! | `conformance` | what documents require, with the tests that show it |
//! | `capi` | the C library: built, installed, and its examples run |
//! | `python` | the Python package: its wheel, and its tests |
//! | `dist` | what a release hands out, made and tried in clean roots |
//! | `differential` | the decisions of races, here and in another revision |
//! | `sockets` | random calls on SCTP sockets, for as long as requested |
//! | `finding` | what is wrong in a file, and where |
//! | `run` | starting programs and reading their output |

mod api;
mod capi;
mod ci;
mod conformance;
mod differential;
mod dist;
mod finding;
mod names;
mod python;
mod run;
mod sockets;
mod tidy;
mod trial_server;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  ci [--only STEP]... [--skip STEP]... [--list]
                        all checks of the main branch, one after another
  tidy                  the rules of this repository: dependencies, lengths, marks, purity
  api [--bless] [PACKAGE]...
                        compare the public API with the reviewed lists; with --bless, write these lists
  conformance [DOCUMENT] [--into FOLDER]
                        what RFCs require and what attacks were thought of, each with its test: one table, or
                        all pages into a folder
  names [FOLDER]...     the shares of names of one word, and names defined more than once, in the crates here or
                        in the sources below other folders
  capi [--install PREFIX] [--dev]
                        install the C library below a prefix; without it, compile and run its examples,
                        also under valgrind and with the address sanitizer
  python [--build] [--dev]
                        build the Python wheel, which includes the command, into target/python/wheels,
                        and test it; with --build only build it, with --dev without optimisation
  dist [--only PART]... [--arch ARCH]... [--make | --try]
                        make all packages of a release in target/dist/out, and run each in a root that has
                        nothing else
  differential --base REVISION [--worlds N] [--from N]
                        compare the decisions of races in random worlds, here and in another revision
  sockets [--minutes N] [--fuzz N]
                        compare random calls on SCTP sockets with models of the kernel for 30 minutes, and
                        fuzz requests of programs to their supervisor for 10 minutes, with new seeds
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["ci", options @ ..] => ci::main(options),
        ["tidy"] => tidy::main(),
        ["api", options @ ..] => api::main(options),
        ["conformance", options @ ..] => conformance::main(options),
        ["names", folders @ ..] => names::main(folders),
        ["capi", options @ ..] => capi::main(options),
        ["python", options @ ..] => python::main(options),
        ["dist", options @ ..] => dist::main(options),
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
