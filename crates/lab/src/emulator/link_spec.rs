//! A user's specification of a link: some of its properties, as text.

use std::fmt;

use eyas_netem::link::{
    BitErrorConfig, BitErrorEffect, CoDelConfig, LinkConfig, LossConfig, QueueConfig, RedConfig,
    Reordering,
};
use toml::{Table, Value};

use crate::units::{Loss, Part, Queue, Rate, Size, Time};

/// Every supported key, in the order of listing.
const KEYS: [&str; 11] = [
    "rate",
    "delay",
    "jitter",
    "loss",
    "queue",
    "mtu",
    "framing",
    "duplicate",
    "reorder",
    "bit-errors",
    "up",
];

/// Some properties of a link; the others remain unchanged.
///
/// As text: `rate=10mbit,delay=20ms,loss=1%`. As TOML: the same keys; `loss` may also be a
/// table as in a plan.
///
/// | key | value | meaning |
/// | --- | --- | --- |
/// | `rate` | `10 Mbit/s`, `10mbit`, `none` | bits per second |
/// | `delay`, `jitter` | `10 ms` | one way; jitter is uniformly distributed and does not reorder packets |
/// | `loss` | `5 %`, `none` | independent for each packet |
/// | `queue` | `100 packets`, `100`, `64 KiB`, `1000 packets codel`, `100 packets red` | |
/// | `mtu` | `1400 bytes`, `none` | larger packets are dropped or fragmented |
/// | `framing` | `38 bytes` | overhead of the link per packet |
/// | `duplicate` | `1 %` | |
/// | `reorder` | `5 % by 10 ms`, `jitter`, `none` | delayed packets, or reordering by jitter |
/// | `bit-errors` | `1e-6` | bit error rate; affected packets are dropped |
/// | `up` | `yes`, `no` | whether packets pass |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    changes: Vec<Change>,
    up: Option<bool>,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Rate(Option<u64>),
    Delay(Time),
    Jitter(Time),
    Loss(LossConfig),
    Queue(QueueConfig),
    Mtu(Option<usize>),
    Framing(usize),
    Duplicate(f64),
    Reorder(Reordering),
    BitErrors(f64),
}

/// An invalid property.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct LinkSpecError {
    /// The key.
    pub key: String,
    /// What is wrong with the value.
    pub reason: String,
}

fn refused(key: &str, reason: impl fmt::Display) -> LinkSpecError {
    LinkSpecError { key: key.to_owned(), reason: reason.to_string() }
}

impl LinkSpec {
    /// Returns whether no property is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.up.is_none()
    }

    /// Returns whether packets are to pass, if that is set.
    #[must_use]
    pub const fn up(&self) -> Option<bool> {
        self.up
    }

    /// Parses properties from text: `rate=10mbit,delay=20ms`.
    ///
    /// # Errors
    /// The first invalid property.
    pub fn read(&mut self, text: &str) -> Result<(), LinkSpecError> {
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| refused(pair, "write KEY=VALUE, such as delay=10ms"))?;
            self.set(key.trim(), value.trim())?;
        }
        Ok(())
    }

    /// Sets one property.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LinkSpecError> {
        let none = matches!(value, "none" | "0");
        let wrong = |cause: crate::units::ParseAmountError| refused(key, cause);
        let share = || -> Result<f64, LinkSpecError> {
            if none { Ok(0.0) } else { Ok(value.parse::<Part>().map_err(wrong)?.0) }
        };
        let time = || if none { Ok(Time::default()) } else { value.parse::<Time>().map_err(wrong) };
        let size = || value.parse::<Size>().map(|size| size.0);
        // Bytes may be given without a unit where the unit is unambiguous.
        let bytes = || value.parse::<usize>().or_else(|_| size().map_err(wrong));
        let change = match key {
            "rate" if value == "none" => Change::Rate(None),
            "rate" if value == "0" => Change::Rate(Some(0)),
            "rate" => Change::Rate(Some(value.parse::<Rate>().map_err(wrong)?.0)),
            "delay" => Change::Delay(time()?),
            "jitter" => Change::Jitter(time()?),
            "loss" if none => Change::Loss(LossConfig::None),
            "loss" => Change::Loss(LossConfig::Probability(share()?)),
            "queue" => Change::Queue(queue(value).map_err(|reason| refused(key, reason))?),
            "mtu" => Change::Mtu(if none { None } else { Some(bytes()?) }),
            "framing" => Change::Framing(if none { 0 } else { bytes()? }),
            "duplicate" => Change::Duplicate(share()?),
            "reorder" => Change::Reorder(reordering(value)?),
            "bit-errors" => Change::BitErrors(probability_of(value)?),
            "up" => {
                self.up = Some(yes_or_no(value)?);
                return Ok(());
            }
            _ => return Err(refused(key, format!("unknown; keys are {}", KEYS.join(", ")))),
        };
        self.changes.push(change);
        Ok(())
    }

    /// Sets the properties from a TOML table.
    ///
    /// # Errors
    /// The first invalid property.
    pub fn read_table(&mut self, table: &Table) -> Result<(), LinkSpecError> {
        for (key, value) in table {
            match value {
                Value::String(text) => self.set(key, text)?,
                Value::Boolean(up) => self.set(key, if *up { "yes" } else { "no" })?,
                Value::Integer(number) => self.set(key, &number.to_string())?,
                Value::Float(number) => self.set(key, &number.to_string())?,
                Value::Table(_) if key == "loss" => {
                    let loss: Loss =
                        value.clone().try_into().map_err(|cause| refused(key, cause))?;
                    self.changes.push(Change::Loss(loss.model()));
                    if loss.bit_errors > 0.0 {
                        self.changes.push(Change::BitErrors(loss.bit_errors));
                    }
                }
                _ => {
                    return Err(refused(
                        key,
                        format!("a {} is not allowed here", value.type_str()),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Applies the properties to a link.
    pub fn apply(&self, link: &mut LinkConfig) {
        for change in &self.changes {
            match change.clone() {
                Change::Rate(rate) => link.rate = rate,
                Change::Delay(delay) => link.delay = delay.0,
                Change::Jitter(jitter) => link.jitter = jitter.0,
                Change::Loss(loss) => link.loss = loss,
                Change::Queue(queue) => link.queue = queue,
                Change::Mtu(mtu) => link.mtu = mtu,
                Change::Framing(bytes) => link.framing = bytes,
                Change::Duplicate(share) => link.duplication = share,
                Change::Reorder(reordering) => link.reordering = reordering,
                Change::BitErrors(probability) => {
                    let effect = BitErrorEffect::Drop;
                    let errors = BitErrorConfig { probability, effect };
                    link.bit_error = (probability > 0.0).then_some(errors);
                }
            }
        }
    }
}

fn queue(text: &str) -> Result<QueueConfig, String> {
    let packets = text.bytes().all(|letter| letter.is_ascii_digit());
    let text = if packets { format!("{text} packets") } else { text.to_owned() };
    Ok(match text.parse::<Queue>().map_err(|cause| cause.to_string())? {
        Queue::Packets(count) => QueueConfig::Packets(count),
        Queue::Bytes(count) => QueueConfig::Bytes(count),
        Queue::Red(limit) => QueueConfig::Red(RedConfig { limit, ..RedConfig::default() }),
        Queue::CoDel(limit) => QueueConfig::CoDel(CoDelConfig { limit, ..CoDelConfig::default() }),
    })
}

fn reordering(text: &str) -> Result<Reordering, LinkSpecError> {
    let wrong = |reason: &dyn fmt::Display| refused("reorder", reason);
    match (text, text.split_once(" by ")) {
        ("none", _) => Ok(Reordering::Never),
        ("jitter", _) => Ok(Reordering::ByJitter),
        (_, Some((share, by))) => Ok(Reordering::Late {
            probability: share.parse::<Part>().map_err(|cause| wrong(&cause))?.0,
            by: by.parse::<Time>().map_err(|cause| wrong(&cause))?.0,
        }),
        _ => Err(wrong(&format!("{text:?} is none of \"5 % by 10 ms\", jitter, none"))),
    }
}

fn probability_of(text: &str) -> Result<f64, LinkSpecError> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| {
        refused("bit-errors", format!("{text:?} is not a probability, such as 1e-6"))
    })
}

fn yes_or_no(text: &str) -> Result<bool, LinkSpecError> {
    match text {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(refused("up", format!("{text:?} is neither yes nor no"))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn link(text: &str) -> LinkConfig {
        let (mut spec, mut link) = (LinkSpec::default(), LinkConfig::default());
        spec.read(text).unwrap();
        spec.apply(&mut link);
        link
    }

    #[test]
    fn a_link_as_text() {
        let link =
            link("rate=10mbit, delay=10ms,loss=5%,queue=64 KiB,reorder=1 % by 3 ms,mtu=1400");
        assert_eq!(link.rate, Some(10_000_000));
        assert_eq!(link.delay, Duration::from_millis(10));
        assert_eq!(link.loss, LossConfig::Probability(0.05));
        assert_eq!(link.queue, QueueConfig::Bytes(65_536));
        let by = Duration::from_millis(3);
        assert_eq!(link.reordering, Reordering::Late { probability: 0.01, by });
        assert_eq!(link.mtu, Some(1400));
    }

    #[test]
    fn unmentioned_settings_stay_and_none_removes_them() {
        let mut spec = LinkSpec::default();
        spec.read("loss=none,rate=none,up=no").unwrap();
        let mut link = link("rate=1kbit,delay=1s,loss=1%");
        spec.apply(&mut link);
        assert_eq!((link.rate, link.delay.as_secs()), (None, 1));
        assert_eq!((link.loss, spec.up()), (LossConfig::None, Some(false)));
    }

    #[test]
    fn tables_can_describe_bursts() {
        let text = "rate = '1 Mbit/s'\nqueue = 7\nloss = { while_bad = '30 %', worsens = '1 %', recovers = '20 %' }";
        let (mut spec, mut link) = (LinkSpec::default(), LinkConfig::default());
        spec.read_table(&toml::from_str(text).unwrap()).unwrap();
        spec.apply(&mut link);
        assert_eq!(link.queue, QueueConfig::Packets(7));
        let LossConfig::GilbertElliott(model) = link.loss else { panic!("{:?}", link.loss) };
        assert_eq!((model.to_bad, model.to_good, model.loss_bad), (0.01, 0.2, 0.3));
    }

    #[test]
    fn errors_name_the_key() {
        let error = |text: &str| LinkSpec::default().read(text).unwrap_err().to_string();
        assert_eq!(error("delay=fast"), "delay: \"fast\" is not a time, such as \"50 ms\"");
        assert_eq!(error("delay"), "delay: write KEY=VALUE, such as delay=10ms");
        assert!(error("latency=1ms").starts_with("latency: unknown; keys are rate, delay, "));
        assert!(error("loss=120%").contains("between 0 % and 100 %"));
        assert!(error("up=perhaps").contains("neither yes nor no"));
        assert!(error("queue=1 s").contains("is not a queue"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-z0-9=,.% -]{0,40}") {
            let _ = LinkSpec::default().read(&text);
        }
    }
}
