//! The value of `--multipath`: options of CMT-SCTP, with the names and values of plans of the lab.

use std::str::FromStr;

use eyas_emulator::units::{ByteSize, in_words_of_the_file};
use eyas_sctp_tokio::protocol::config::{
    AssociationConfig, AssociationOptions, MultipathConfig, SchedulerKind,
};
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
    options: AssociationOptions,
}

impl MultipathOptions {
    /// Has all paths used at once, as given.
    pub(crate) fn apply(&self, config: &mut AssociationConfig) {
        config.multipath = Some(MultipathConfig::default());
        config.extensions.nr_sack = true;
        self.options.apply(config);
    }

    /// Returns whether this option is given.
    pub(crate) fn has(&self, name: &str) -> bool {
        serde_json::to_value(&self.options).is_ok_and(|given| given.get(name).is_some())
    }
}

/// The error of parsing the options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MultipathError {
    #[error("'{0}' is not NAME=VALUE; {names}", names = known_names())]
    Form(String),
    #[error("there is no option '{0}'; {names}", names = known_names())]
    UnknownName(String),
    #[error("{0} is given twice")]
    Twice(String),
    /// What is wrong with the value.
    #[error("{name}: {cause}")]
    Value { name: String, cause: String },
    /// What is wrong with all of them together.
    #[error("{0}")]
    Together(String),
    #[error("mapping: '{0}' is not {MAPPINGS}")]
    Mapping(String),
    #[error("buffer: {0} bytes are not from {MIN_BUFFER} to {most}", most = u32::MAX)]
    Buffer(usize),
    #[error("flight_cap: '{0}' is neither 0, for none, nor from 100 to 65535")]
    FlightCap(String),
    #[error("{name}: '{value}' is neither true nor false")]
    Boolean { name: String, value: String },
    #[error(
        "scheduler: priority and weighted-fair-queueing go by a value of each stream, which cannot be given here; \
         the others are fcfs, round-robin, round-robin-packet and fair-bandwidth"
    )]
    Scheduler,
    /// Programs have a socket option for it.
    #[error("{name}: programs choose it themselves, by {option}")]
    OfPrograms { name: &'static str, option: &'static str },
}

impl FromStr for MultipathOptions {
    type Err = MultipathError;

    fn from_str(text: &str) -> Result<Self, MultipathError> {
        let mut options = Map::new();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| MultipathError::Form(option.to_owned()))?;
            let name = name.trim().replace('-', "_");
            if !NAMES.contains(&name.as_str()) && name != SCHEDULER {
                return Err(MultipathError::UnknownName(name));
            }
            // One at a time, so that the error names it.
            let one = Map::from_iter([(name.clone(), typed(&name, value.trim())?)]);
            let checked = serde_json::from_value::<AssociationOptions>(Value::Object(one.clone()));
            checked.map_err(|cause| match name.as_str() {
                // The path of each stream could not be given.
                "mapping" => MultipathError::Mapping(value.to_owned()),
                _ => {
                    let cause = in_words_of_the_file(&cause);
                    MultipathError::Value { name: name.clone(), cause }
                }
            })?;
            if options.contains_key(&name) {
                return Err(MultipathError::Twice(name));
            }
            options.extend(one);
        }
        let options = serde_json::from_value::<AssociationOptions>(Value::Object(options));
        let options =
            options.map_err(|cause| MultipathError::Together(in_words_of_the_file(&cause)))?;
        check(&options)?;
        Ok(Self { options })
    }
}

/// Checks values that an option may have, but not one of the command.
fn check(options: &AssociationOptions) -> Result<(), MultipathError> {
    if let Some(bytes) = options.buffer
        && u32::try_from(bytes).ok().is_none_or(|bytes| bytes < MIN_BUFFER)
    {
        return Err(MultipathError::Buffer(bytes));
    }
    match options.scheduler {
        Some(SchedulerKind::Priority | SchedulerKind::WeightedFairQueueing) => {
            Err(MultipathError::Scheduler)
        }
        _ => Ok(()),
    }
}

/// Returns a value as the options have it: a boolean, a number or a text.
fn typed(name: &str, text: &str) -> Result<Value, MultipathError> {
    match name {
        "buffer" => {
            let bytes =
                text.parse::<usize>().or_else(|_| text.parse::<ByteSize>().map(|size| size.0));
            bytes.map(Value::from).map_err(|cause| {
                let (name, cause) = (name.to_owned(), cause.to_string());
                MultipathError::Value { name, cause }
            })
        }
        "flight_cap" => match text.parse::<u16>() {
            Ok(percent @ (0 | 100..)) => Ok(percent.into()),
            _ => Err(MultipathError::FlightCap(text.to_owned())),
        },
        _ if BOOLEANS.contains(&name) => match text {
            "true" | "yes" | "on" => Ok(Value::Bool(true)),
            "false" | "no" | "off" => Ok(Value::Bool(false)),
            _ => {
                let (name, value) = (name.to_owned(), text.to_owned());
                Err(MultipathError::Boolean { name, value })
            }
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
        BufferSplitting, CongestionControlKind, FlightCap, MultipathProfile, SackPath,
        SchedulerKind, StreamMapping,
    };

    use super::*;

    fn config(text: &str) -> AssociationConfig {
        let mut config = AssociationConfig::default();
        MultipathOptions::from_str(text).expect(text).apply(&mut config);
        config
    }

    fn multipath(text: &str) -> MultipathConfig {
        config(text).multipath.expect("all paths are used")
    }

    #[test]
    fn without_options_everything_has_its_default() {
        assert_eq!(multipath(""), MultipathConfig::default());
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
        MultipathProfile::Pfldnet2010.apply(&mut published);
        let mut expected = published.multipath.expect("all paths are used");
        expected.mapping = StreamMapping::Modulo;
        assert_eq!(multipath("profile=pfldnet2010,mapping=modulo"), expected);
    }

    #[test]
    fn every_option_of_a_plan_is_known_or_left_out_on_purpose() {
        let error = serde_json::from_str::<eyas_lab::situation::AssociationSetup>("{\"none\": 1}");
        let error = error.unwrap_err();
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
            let error = MultipathOptions::from_str(text).expect_err(text).to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
