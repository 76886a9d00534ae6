//! The options that the benchmarks take.

/// The options of a benchmark.
pub(crate) struct Options {
    /// Rounds to run; the benchmark's own number if not given.
    pub(crate) rounds: Option<usize>,
    /// Print the tables without changing the page.
    pub(crate) dry: bool,
    /// Measure little, only to check that everything works; not for the page.
    pub(crate) quick: bool,
    /// Only install and build the programs, so that the machine is idle during measurements.
    pub(crate) build: bool,
    /// Passed by the benchmark to itself once the namespaces exist.
    pub(crate) inside: bool,
}

impl Options {
    pub(crate) fn parse(args: &[&str]) -> Result<Self, String> {
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
                    return Err(format!("a benchmark takes {known}, not {other}"));
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
