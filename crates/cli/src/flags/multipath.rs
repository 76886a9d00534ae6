//! The value of `--multipath`: options of CMT-SCTP, with the names and values of plans of the lab.

use std::str::FromStr;

use eyas_emulator::units::{Size, in_words_of_the_file};
use eyas_lab::situation::AssociationSetup;
use eyas_sctp_tokio::protocol::config::{AssociationConfig, Multipath};
use serde_json::{Map, Value};

/// The options, with the names of a plan's `association`.
const NAMES: [&str; 19] = [
    "profile",
    "mapping",
    "path_order",
    "buffer",
    "sender_splitting",
    "receiver_splitting",
    "congestion_control",
    "loss_detection",
    "cuc",
    "split_fast_retransmit",
    "delayed_ack",
    "rtx_policy",
    "rescheduling",
    "sack_path",
    "nr_sack",
    "nr_sack_policy",
    "burst",
    "flight_cap",
    "interleaving",
];
/// The name of a stream scheduler, which is not one of several paths.
const SCHEDULER: &str = "scheduler";
/// The options that are switched on or off.
const BOOLEANS: [&str; 4] = ["nr_sack", "split_fast_retransmit", "delayed_ack", "interleaving"];
/// The mappings that need no names of paths.
const MAPPINGS: &str = "automatic, round-robin or modulo";
/// The smallest buffer: a few packets.
pub(super) const MIN_BUFFER: u32 = 4096;

/// How all paths are used at once. Options that are not given have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MultipathOptions {
    setup: AssociationSetup,
}

impl MultipathOptions {
    /// Has all paths used at once, as given.
    pub(crate) fn apply(&self, config: &mut AssociationConfig) {
        config.multipath = Some(Multipath::default());
        config.extensions.nr_sack = true;
        self.setup.apply(config);
    }

    /// Returns whether this option is given.
    pub(crate) fn has(&self, name: &str) -> bool {
        serde_json::to_value(&self.setup).is_ok_and(|given| given.get(name).is_some())
    }
}

impl FromStr for MultipathOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut options = Map::new();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| format!("'{option}' is not NAME=VALUE; {}", known_names()))?;
            let name = name.trim().replace('-', "_");
            if !NAMES.contains(&name.as_str()) && name != SCHEDULER {
                return Err(format!("there is no option '{name}'; {}", known_names()));
            }
            // One at a time, so that the error names it.
            let one = Map::from_iter([(name.clone(), typed(&name, value.trim())?)]);
            let checked = serde_json::from_value::<AssociationSetup>(Value::Object(one.clone()));
            checked.map_err(|cause| match name.as_str() {
                // Plans can name the path of each stream, too.
                "mapping" => format!("mapping: '{value}' is not {MAPPINGS}"),
                _ => format!("{name}: {}", in_words_of_the_file(&cause)),
            })?;
            if options.contains_key(&name) {
                return Err(format!("{name} is given twice"));
            }
            options.extend(one);
        }
        let setup = serde_json::from_value::<AssociationSetup>(Value::Object(options));
        let setup = setup.map_err(|cause| in_words_of_the_file(&cause))?;
        check(&setup)?;
        Ok(Self { setup })
    }
}

/// Checks values that a plan may have, but an association on a network cannot.
fn check(setup: &AssociationSetup) -> Result<(), String> {
    if let Some(Size(bytes)) = setup.buffer
        && u32::try_from(bytes).ok().is_none_or(|bytes| bytes < MIN_BUFFER)
    {
        return Err(format!("buffer: {bytes} bytes are not from {MIN_BUFFER} to {}", u32::MAX));
    }
    match setup.check() {
        Ok(()) => Ok(()),
        Err(_) => Err("scheduler: priority and weighted-fair-queueing go by a value of each \
                       stream, which cannot be given here; the others are fcfs, round-robin, \
                       round-robin-packet and fair-bandwidth"
            .to_owned()),
    }
}

/// Returns a value as plans have it: a boolean, a number, a size or another text.
fn typed(name: &str, text: &str) -> Result<Value, String> {
    match name {
        "buffer" => {
            Ok(text.parse::<u64>().map_or(text.into(), |count| format!("{count} bytes").into()))
        }
        "flight_cap" => match text.parse::<u16>() {
            Ok(percent @ (0 | 100..)) => Ok(percent.into()),
            _ => Err(format!("flight_cap: '{text}' is neither 0, for none, nor from 100 to 65535")),
        },
        _ if BOOLEANS.contains(&name) => match text {
            "true" | "yes" | "on" => Ok(Value::Bool(true)),
            "false" | "no" | "off" => Ok(Value::Bool(false)),
            _ => Err(format!("{name}: '{text}' is neither true nor false")),
        },
        _ => Ok(text.into()),
    }
}

fn known_names() -> String {
    format!("options are {} and {SCHEDULER}", NAMES.join(", "))
}

#[cfg(test)]
mod tests {
    use eyas_sctp_tokio::protocol::config::{
        BufferSplitting, CongestionControlKind, FlightCap, Profile, SackPath, SchedulerKind,
        StreamMapping,
    };

    use super::*;

    fn config(text: &str) -> AssociationConfig {
        let mut config = AssociationConfig::default();
        MultipathOptions::from_str(text).expect(text).apply(&mut config);
        config
    }

    fn multipath(text: &str) -> Multipath {
        config(text).multipath.expect("all paths are used")
    }

    #[test]
    fn without_options_everything_has_its_default() {
        assert_eq!(multipath(""), Multipath::default());
        assert!(config("").extensions.nr_sack);
    }

    #[test]
    fn options_have_the_names_and_values_of_plans() {
        let all = "mapping=modulo, sack-path=last-arrival,sender_splitting=queued,flight-cap=0";
        let changed = multipath(all);
        assert_eq!(changed.mapping, StreamMapping::Modulo);
        assert_eq!(changed.sack_path, SackPath::LastArrival);
        assert_eq!(changed.sender_splitting, BufferSplitting::Queued);
        assert_eq!(changed.flight_cap, None);
        assert_eq!(multipath("flight-cap=150").flight_cap, Some(FlightCap { percent: 150 }));
        let changed =
            config("congestion-control=lia,buffer=2 MiB,scheduler=round-robin,nr-sack=off");
        assert_eq!(changed.congestion_control, CongestionControlKind::Lia.into());
        assert_eq!((changed.send_buffer, changed.receive_buffer), (2 << 20, 2 << 20));
        assert_eq!(changed.scheduler, SchedulerKind::RoundRobin.into());
        assert!(!changed.extensions.nr_sack);
        assert_eq!(config("buffer=65536").send_buffer, 65_536);
    }

    #[test]
    fn a_published_profile_is_the_base_of_the_other_options() {
        let mut published = AssociationConfig::default();
        Profile::Pfldnet2010.apply(&mut published);
        let mut expected = published.multipath.expect("all paths are used");
        expected.mapping = StreamMapping::Modulo;
        assert_eq!(multipath("profile=pfldnet2010,mapping=modulo"), expected);
    }

    #[test]
    fn every_option_of_a_plan_is_known_or_left_out_on_purpose() {
        let error = serde_json::from_str::<AssociationSetup>("{\"none\": 1}").unwrap_err();
        let error = error.to_string();
        let listed = error.split_once("expected one of").expect(&error).1;
        let of_plans: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
        // Names of paths, values for each stream, and what the option itself is.
        let left_out = ["only", "multipath", "priorities", "deadlines", "receive_order"];
        for name in &of_plans {
            let is_known = NAMES.contains(name) || *name == SCHEDULER;
            assert_ne!(is_known, left_out.contains(name), "{name}");
        }
        assert!(NAMES.iter().all(|name| of_plans.contains(name)));
    }

    #[test]
    fn errors_list_what_is_valid() {
        for (text, parts) in [
            ("maping=modulo", &["no option 'maping'", "mapping", "sack_path"][..]),
            ("modulo", &["'modulo' is not NAME=VALUE", "mapping"]),
            ("mapping=fixed", &["mapping", "fixed", "round-robin", "modulo", "automatic"]),
            ("sack-path=best", &["sack_path", "best", "last-arrival", "budgeted"]),
            ("congestion-control=vegas", &["congestion_control", "vegas", "cubic", "lia", "olia"]),
            ("buffer=much", &["buffer", "much", "64 KiB"]),
            ("delayed-ack=maybe", &["delayed_ack", "maybe", "true", "false"]),
            ("buffer=4095", &["buffer", "4095", "4096"]),
            ("buffer=5000 MB", &["buffer", "4294967295"]),
            ("flight-cap=99", &["flight_cap", "99", "100"]),
            ("flight-cap=none", &["flight_cap", "none", "0, for none", "65535"]),
            ("burst=3", &["burst", "3", "acknowledged", "per-event", "total", "none"]),
            ("rescheduling=on", &["rescheduling", "on", "sender", "receiver", "both"]),
            ("profile=best", &["profile", "best", "default", "pfldnet2010"]),
            ("scheduler=priority", &["scheduler", "fcfs", "fair-bandwidth"]),
            ("cuc=v1,cuc=v2", &["cuc is given twice"]),
        ] {
            let error = MultipathOptions::from_str(text).expect_err(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
