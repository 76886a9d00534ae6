//! Some properties of a link, as text or as a table: the same on the command line, in topologies
//! and in plans.

use std::fmt;
use std::str::FromStr;

use eyas_netem::link::{
    BitErrorConfig, BitErrorEffect, CoDelConfig, LinkConfig, QueueConfig, RedConfig,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::{Table, Value};

use super::{
    BitRate, ByteSize, FramingSize, JitterSpec, LossSpec, ParseAmountError, PercentValue,
    QueueSpec, RateRecording, ReorderSpec, TimeSpan, in_words_of_the_file,
};

/// Every supported key, in the order of listing.
const KEYS: [&str; 12] = [
    "rate",
    "trace",
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
/// The average queue lengths of RED, relative to its limit, at which drops begin and become
/// frequent: 20 and 80 packets of 100, as in Dreibholz et al., AINA 2010.
const RED_MINIMUM: f64 = 0.2;
/// The length at which drops become frequent.
const RED_MAXIMUM: f64 = 0.8;

/// Some properties of a link; the others remain unchanged.
///
/// As text: `rate=10mbit,delay=20ms,loss=1%`. As a table: the same keys; `loss` may also be a
/// table.
///
/// | key | value | meaning |
/// | --- | --- | --- |
/// | `rate` | `10 Mbit/s`, `10mbit`, `none` | bits per second |
/// | `trace` | `FILE` | a recorded rate, instead |
/// | `delay` | `10 ms` | one way |
/// | `jitter` | `3 ms`, `3 ms 25 % normal` | with correlation and distribution |
/// | `loss` | `5 %`, `none` | independent for each packet |
/// | `queue` | `100 packets`, `100`, `64 KiB`, `1000 packets codel`, `100 packets red` | |
/// | `mtu` | `1400 bytes`, `none` | larger packets are dropped or fragmented |
/// | `framing` | `38 bytes` | overhead of the link per packet |
/// | `duplicate` | `1 %` | |
/// | `reorder` | `5 % by 10 ms`, `jitter`, `none` | delayed packets, or reordering by jitter |
/// | `bit-errors` | `1e-6` | bit error rate; affected packets are dropped |
/// | `up` | `yes`, `no` | whether packets pass |
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinkSpec {
    /// The rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<LinkRate>,
    /// A recorded rate, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<RateRecording>,
    /// The one-way delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<TimeSpan>,
    /// The random part of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterSpec>,
    /// The random losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSpec>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// The largest packet; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<ByteSize>,
    /// Bytes that the link adds to each packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framing: Option<FramingSize>,
    /// The share of packets that arrive twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<PercentValue>,
    /// Whether packets overtake each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<ReorderSpec>,
    /// The bit error rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_errors: Option<f64>,
    /// Whether packets pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

/// The rate of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRate {
    /// Transmission takes no time.
    Unlimited,
    /// This rate; with 0 nothing is sent.
    Limited(BitRate),
}

impl LinkRate {
    /// Returns the limit.
    #[must_use]
    pub const fn limit(self) -> Option<BitRate> {
        match self {
            Self::Unlimited => None,
            Self::Limited(rate) => Some(rate),
        }
    }
}

impl FromStr for LinkRate {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        Ok(match text {
            "none" => Self::Unlimited,
            "0" => Self::Limited(BitRate(0)),
            _ => Self::Limited(text.parse()?),
        })
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("none"),
            Self::Limited(rate) => rate.fmt(f),
        }
    }
}

as_text!(LinkRate);

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
        *self == Self::default()
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
        // Where nothing is a value of its kind, it may be written without a unit.
        fn or_none<T: Default + FromStr<Err: fmt::Display>>(
            key: &str,
            value: &str,
        ) -> Result<Option<T>, LinkSpecError> {
            match value {
                "none" | "0" => Ok(Some(T::default())),
                _ => parsed(key, value),
            }
        }
        match key {
            "rate" => (self.rate, self.trace) = (parsed(key, value)?, None),
            "trace" => (self.trace, self.rate) = (parsed(key, value)?, None),
            "delay" => self.delay = or_none(key, value)?,
            "jitter" => self.jitter = parsed(key, value)?,
            "loss" => self.loss = parsed(key, value)?,
            "queue" => self.queue = parsed(key, value)?,
            "mtu" => self.mtu = Some(bytes(key, value)?),
            "framing" => self.framing = Some(FramingSize(bytes(key, value)?)),
            "duplicate" => self.duplicate = or_none(key, value)?,
            "reorder" => self.reorder = parsed(key, value)?,
            "bit-errors" => self.bit_errors = Some(probability(value)?),
            "up" => self.up = Some(yes_or_no(value)?),
            _ => return Err(refused(key, format!("unknown; keys are {}", KEYS.join(", ")))),
        }
        Ok(())
    }

    /// Sets the properties from a TOML table.
    ///
    /// # Errors
    /// The first invalid property.
    pub fn read_table(&mut self, table: &Table) -> Result<(), LinkSpecError> {
        for (key, value) in table {
            let wrong =
                |cause: toml::de::Error| refused(key, in_words_of_the_file(&cause.message()));
            match value {
                Value::String(text) => self.set(key, text)?,
                Value::Boolean(up) => self.set(key, if *up { "yes" } else { "no" })?,
                Value::Integer(number) => self.set(key, &number.to_string())?,
                Value::Float(number) => self.set(key, &number.to_string())?,
                Value::Table(_) if key == "loss" => {
                    self.loss = Some(value.clone().try_into().map_err(wrong)?);
                }
                Value::Table(_) if key == "trace" => {
                    self.trace = Some(value.clone().try_into().map_err(wrong)?);
                }
                _ => {
                    let kind = value.type_str();
                    return Err(refused(key, format!("a {kind} is not allowed here")));
                }
            }
        }
        Ok(())
    }

    /// Applies the properties to a link; whether it is up is not part of its configuration.
    pub fn apply(&self, link: &mut LinkConfig) {
        if let Some(rate) = self.rate {
            (link.rate, link.trace) = (rate.limit().map(|rate| rate.0), None);
        }
        if let Some(recording) = &self.trace {
            (link.rate, link.trace) = (None, Some(recording.trace.clone()));
        }
        if let Some(delay) = self.delay {
            link.delay = delay.0;
        }
        if let Some(jitter) = self.jitter {
            link.jitter = jitter.amount.0;
            link.jitter_distribution = jitter.distribution;
            link.jitter_correlation = jitter.correlation.0;
        }
        if let Some(loss) = self.loss {
            link.loss = loss.model();
        }
        if let Some(queue) = self.queue {
            link.queue = queue_config(queue);
        }
        if let Some(mtu) = self.mtu {
            link.mtu = (mtu.0 > 0).then_some(mtu.0);
        }
        if let Some(framing) = self.framing {
            link.framing = framing.0.0;
        }
        if let Some(share) = self.duplicate {
            link.duplication = share.0;
        }
        if let Some(reorder) = self.reorder {
            link.reordering = reorder.0;
        }
        let in_loss = self.loss.map(|loss| loss.bit_errors).filter(|errors| *errors > 0.0);
        if let Some(probability) = self.bit_errors.or(in_loss) {
            let errors = BitErrorConfig { probability, effect: BitErrorEffect::Drop };
            link.bit_error = (probability > 0.0).then_some(errors);
        }
    }
}

/// The properties for readers: `rate 1 Mbit/s, delay 5 ms`.
impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loss = self.loss.map(|loss| match loss.while_bad {
            Some(_) => "in bursts".to_owned(),
            None => loss.probability.to_string(),
        });
        let yes_or_no = |up| if up { "yes" } else { "no" }.to_owned();
        let all = [
            self.rate.map(|rate| rate.to_string()),
            self.trace.as_ref().map(|trace| trace.file.clone()),
            self.delay.map(|delay| delay.to_string()),
            self.jitter.map(|jitter| jitter.to_string()),
            loss,
            self.queue.map(|queue| queue.to_string()),
            self.mtu.map(|mtu| mtu.to_string()),
            self.framing.map(|framing| framing.0.to_string()),
            self.duplicate.map(|share| share.to_string()),
            self.reorder.map(|reorder| reorder.to_string()),
            self.bit_errors.map(|errors| errors.to_string()),
            self.up.map(yes_or_no),
        ];
        let set = KEYS.iter().zip(all).filter_map(|(key, value)| Some(format!("{key} {}", value?)));
        f.write_str(&set.collect::<Vec<_>>().join(", "))
    }
}

impl<'de> Deserialize<'de> for LinkSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut spec = Self::default();
        spec.read_table(&Table::deserialize(deserializer)?).map_err(de::Error::custom)?;
        Ok(spec)
    }
}

fn parsed<T: FromStr<Err: fmt::Display>>(
    key: &str,
    value: &str,
) -> Result<Option<T>, LinkSpecError> {
    value.parse().map(Some).map_err(|cause| refused(key, cause))
}

/// Parses a number of bytes, which may be given without a unit where there is no other.
fn bytes(key: &str, value: &str) -> Result<ByteSize, LinkSpecError> {
    match value {
        "none" => Ok(ByteSize(0)),
        _ => value
            .parse()
            .map(ByteSize)
            .or_else(|_| value.parse())
            .map_err(|cause| refused(key, cause)),
    }
}

fn queue_config(queue: QueueSpec) -> QueueConfig {
    match queue {
        QueueSpec::Packets(limit) => QueueConfig::Packets(limit),
        QueueSpec::Bytes(limit) => QueueConfig::Bytes(limit),
        QueueSpec::Red(limit) => QueueConfig::Red(RedConfig {
            limit,
            minimum: RED_MINIMUM * limit as f64,
            maximum: RED_MAXIMUM * limit as f64,
            ..RedConfig::default()
        }),
        QueueSpec::CoDel(limit) => {
            QueueConfig::CoDel(CoDelConfig { limit, ..CoDelConfig::default() })
        }
    }
}

fn probability(text: &str) -> Result<f64, LinkSpecError> {
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

    use eyas_netem::link::{JitterDistribution, LossConfig, ReorderingMode};

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
        assert_eq!(link.reordering, ReorderingMode::Late { probability: 0.01, by });
        assert_eq!(link.mtu, Some(1400));
    }

    #[test]
    fn unmentioned_settings_stay_and_none_removes_them() {
        let mut spec = LinkSpec::default();
        spec.read("loss=none,rate=none,up=no").unwrap();
        let mut link = link("rate=1kbit,delay=1s,loss=1%");
        spec.apply(&mut link);
        assert_eq!((link.rate, link.delay.as_secs()), (None, 1));
        assert_eq!((link.loss, spec.up), (LossConfig::None, Some(false)));
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
    fn jitter_has_a_distribution_and_a_correlation() {
        let link = link("delay=100ms,jitter=10ms 25% paretonormal,reorder=jitter");
        assert_eq!(link.jitter, Duration::from_millis(10));
        assert_eq!(link.jitter_distribution, JitterDistribution::ParetoNormal);
        assert_eq!(link.jitter_correlation, 0.25);
        assert_eq!(link.reordering, ReorderingMode::ByJitter);
    }

    #[test]
    fn a_recorded_rate_and_a_constant_one_replace_each_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1\n2\n").unwrap();
        let name = file.path().display();
        let recorded = link(&format!("rate=1mbit,trace={name}"));
        let rate = recorded.trace.map(|trace| trace.rate());
        assert_eq!((recorded.rate, rate), (None, Some(12_000_000)));
        let constant = link(&format!("trace={name},rate=1mbit"));
        assert_eq!((constant.rate, constant.trace), (Some(1_000_000), None));
    }

    #[test]
    fn what_is_stored_is_the_same_again() {
        let mut spec = LinkSpec::default();
        spec.read(
            "rate=none,delay=1 ms,jitter=2 ms 5 % normal,loss=1 %,queue=7,mtu=1400,framing=38,\
             duplicate=1 %,reorder=5 % by 3 ms,bit-errors=1e-6,up=no",
        )
        .unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<LinkSpec>(&json).unwrap(), spec, "{json}");
        let toml = toml::to_string(&spec).unwrap();
        assert_eq!(toml::from_str::<LinkSpec>(&toml).unwrap(), spec, "{toml}");
    }

    #[test]
    fn errors_name_the_key() {
        let error = |text: &str| LinkSpec::default().read(text).unwrap_err().to_string();
        assert_eq!(error("delay=fast"), "delay: \"fast\" is not a time, such as \"50 ms\"");
        assert_eq!(error("delay"), "delay: write KEY=VALUE, such as delay=10ms");
        assert!(
            error("latency=1ms").starts_with("latency: unknown; keys are rate, trace, delay, ")
        );
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
