//! Converts flags to a topology.

use std::fs;

use eyas_emulator::{LinkDirection, LinkSpec, PathTopology, Scenario, Topology};

use super::{emulator_failure, invalid_flag, spec};
use crate::failure::Failure;
use crate::flags::{LinkFlags, NetemRunFlags};

/// The name of the path if there is only one.
const ONLY_PATH: &str = "path";

/// The link specifications of the flags: for both directions, and for each.
pub(super) struct LinkSpecs {
    pub(super) both: LinkSpec,
    pub(super) forward: LinkSpec,
    pub(super) backward: LinkSpec,
}

impl LinkSpecs {
    pub(super) fn from_flags(flags: &LinkFlags) -> Result<Self, Failure> {
        let mut both = LinkSpec::default();
        for (key, value) in flags.pairs() {
            both.set(key, value)
                .map_err(|cause| invalid_flag(&format!("--{key}"), &cause.reason))?;
        }
        let forward = spec("--forward", flags.forward.as_deref().unwrap_or_default())?;
        let backward = spec("--backward", flags.backward.as_deref().unwrap_or_default())?;
        Ok(Self { both, forward, backward })
    }

    fn apply(&self, path: &mut PathTopology) {
        for (direction, settings) in
            [(LinkDirection::Forward, &self.forward), (LinkDirection::Backward, &self.backward)]
        {
            self.both.apply(path.link_mut(direction));
            settings.apply(path.link_mut(direction));
        }
    }
}

/// Returns the requested network and its scheduled changes.
pub(super) fn scenario(flags: &NetemRunFlags) -> Result<Scenario, Failure> {
    let mut scenario = match &flags.topology {
        Some(file) => {
            let path = file.display().to_string();
            let text = fs::read_to_string(file).map_err(|cause| Failure::read(&path, &cause))?;
            Scenario::parse(&text).map_err(|cause| {
                let failure = emulator_failure(cause);
                Failure::new(failure.kind, format!("{path}: {failure}"))
                    .hint("'eyas man guide netem' explains every key, with examples")
            })?
        }
        None => Scenario { topology: paths(&flags.path)?, events: Vec::new() },
    };
    let specs = LinkSpecs::from_flags(&flags.link)?;
    scenario.topology.paths.iter_mut().for_each(|path| specs.apply(path));
    if flags.topology.is_none() {
        // Settings of one path take precedence over those of all paths.
        for (path, text) in scenario.topology.paths.iter_mut().zip(&flags.path) {
            apply_path_flag(path, text)?;
        }
    }
    let topology = &mut scenario.topology;
    topology.seed = flags.seed.unwrap_or(topology.seed);
    topology.core = flags.core.or(topology.core);
    topology.check().map_err(emulator_failure)?;
    Ok(scenario)
}

fn paths(texts: &[String]) -> Result<Topology, Failure> {
    let mut topology = Topology::default();
    let names = texts.iter().map(|text| text.split_once(':').map_or(&**text, |(name, _)| name));
    for name in names.chain(texts.is_empty().then_some(ONLY_PATH)) {
        topology = topology.with_path(name, Default::default(), Default::default());
    }
    topology.check().map_err(emulator_failure)?;
    Ok(topology)
}

/// Configures a path according to its flag: `NAME:KEY=VALUE,forward.KEY=VALUE`.
fn apply_path_flag(path: &mut PathTopology, text: &str) -> Result<(), Failure> {
    let Some((_, pairs)) = text.split_once(':') else { return Ok(()) };
    for pair in pairs.split(',') {
        let (directions, pair): (&[LinkDirection], _) = match pair.trim().split_once('.') {
            Some(("forward", pair)) => (&[LinkDirection::Forward], pair),
            Some(("backward", pair)) => (&[LinkDirection::Backward], pair),
            _ => (&[LinkDirection::Forward, LinkDirection::Backward], pair),
        };
        let spec = spec("--path", pair)?;
        directions.iter().for_each(|direction| spec.apply(path.link_mut(*direction)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::flags::{Cli, Command, NetemAction};

    fn scenario_of(line: &str) -> Result<Scenario, Failure> {
        let line = format!("eyas netem run {line} -- true");
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Netem(flags) = cli.command else { panic!("the netem command") };
        let NetemAction::Run(flags) = flags.action else { panic!("the run action") };
        scenario(&flags)
    }

    #[test]
    fn a_flag_of_one_direction_overrides_that_of_both() {
        let topology =
            scenario_of("--rate 10mbit --delay 10ms --forward delay=5ms").unwrap().topology;
        let [path] = &topology.paths[..] else { panic!("one path") };
        assert_eq!((path.forward.rate, path.backward.rate), (Some(10_000_000), Some(10_000_000)));
        assert_eq!((path.forward.delay.as_millis(), path.backward.delay.as_millis()), (5, 10));
    }

    #[test]
    fn flags_of_a_path_override_the_common_ones() {
        let line = "--delay 10ms --path wifi --path lte:delay=40ms,backward.loss=1%";
        let topology = scenario_of(line).unwrap().topology;
        let delays: Vec<_> =
            topology.paths.iter().map(|path| path.forward.delay.as_millis()).collect();
        assert_eq!(delays, [10, 40]);
        assert_ne!(topology.paths[1].backward.loss, topology.paths[1].forward.loss);
    }

    #[test]
    fn a_recorded_rate_may_be_that_of_one_direction() {
        let file = std::env::temp_dir().join(format!("eyas-trace-{}", std::process::id()));
        std::fs::write(&file, "1\n2\n2\n").unwrap();
        let name = file.display();
        let topology =
            scenario_of(&format!("--rate 1mbit --backward trace={name}")).unwrap().topology;
        let wrong = scenario_of(&format!("--trace {name}.none")).unwrap_err().message;
        std::fs::write(&file, "1\n2\n1\n").unwrap();
        let mistake = scenario_of(&format!("--trace {name}")).unwrap_err().message;
        std::fs::remove_file(&file).unwrap();
        let [path] = &topology.paths[..] else { panic!("one path") };
        assert_eq!((path.forward.rate, &path.forward.trace), (Some(1_000_000), &None));
        let rate = path.backward.trace.as_ref().map(|trace| trace.rate());
        assert_eq!((path.backward.rate, rate), (None, Some(18_000_000)));
        assert_eq!(mistake, format!("--trace: {name}: line 3: earlier than the line before"));
        assert!(wrong.starts_with(&format!("--trace: {name}.none: ")), "{wrong}");
    }

    #[test]
    fn mistakes_name_their_flag() {
        let message = |line: &str| scenario_of(line).unwrap_err().message;
        assert_eq!(message("--delay soon"), "--delay: \"soon\" is not a time, such as \"50 ms\"");
        assert!(message("--path a:lag=1ms").starts_with("--path: lag: unknown; keys are rate, "));
        assert!(message("--path a --path a").contains("two paths"));
        assert!(message("--topology /nowhere.toml").starts_with("cannot read /nowhere.toml"));
    }
}
