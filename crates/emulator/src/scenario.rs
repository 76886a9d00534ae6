//! A network and its changes over time, as a TOML file.
//!
//! ```toml
//! seed = 7
//!
//! [path.wifi]              # the same in both directions
//! rate = "20 Mbit/s"
//! delay = "10 ms"
//! queue = "100 packets"
//!
//! [path.wifi.backward]     # from the server to the client, another rate
//! rate = "50 Mbit/s"
//!
//! [[path.wifi.middlebox]]  # the first is nearest to the client
//! kind = "nat"
//!
//! [path.lte]
//! rate = "5 Mbit/s"
//! delay = "40 ms"
//! ipv4 = false
//!
//! [[event]]
//! at = "10 s"
//! path = "wifi"
//! loss = "10 %"
//! ```

use std::time::Duration;

use eyas_netem::world::LinkDirection;
use serde::Deserialize;
use toml::{Table, Value};

use super::error::EmulatorError;
use super::topology::{PathTopology, Topology};
use crate::middlebox::MiddleboxConfig;
use crate::units::{LinkSpec, LinkSpecError, MiddleboxSpec, TimeSpan, in_words_of_the_file};

/// Both directions.
const BOTH: [LinkDirection; 2] = [LinkDirection::Forward, LinkDirection::Backward];

/// A network and its changes over time.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// The initial network.
    pub topology: Topology,
    /// The changes, ordered by time.
    pub events: Vec<ScenarioEvent>,
}

/// A change of a link.
#[derive(Clone, Debug)]
pub struct ScenarioEvent {
    /// The time since the start of the emulator.
    pub at: Duration,
    /// The path.
    pub path: String,
    /// The directions.
    pub directions: Vec<LinkDirection>,
    /// The new properties.
    pub spec: LinkSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    seed: Option<u64>,
    core: Option<usize>,
    path: Table,
    #[serde(default)]
    event: Vec<Table>,
}

fn refused(section: &str, reason: impl std::fmt::Display) -> EmulatorError {
    EmulatorError::Topology(format!("{section}: {reason}"))
}

impl Scenario {
    /// Parses a file. Paths are numbered in the order of their names.
    ///
    /// # Errors
    /// The first error.
    pub fn parse(text: &str) -> Result<Self, EmulatorError> {
        let file: ScenarioFile = toml::from_str(text)
            .map_err(|cause| EmulatorError::Topology(in_words_of_the_file(&cause)))?;
        let mut topology = Topology { core: file.core, ..Topology::default() };
        topology.seed = file.seed.unwrap_or(topology.seed);
        for (name, value) in &file.path {
            let section = format!("path.{name}");
            let Value::Table(table) = value else {
                return Err(refused(&section, "write [path.NAME] and its keys below"));
            };
            let number = topology.paths.len().min(usize::from(u8::MAX) - 1) as u8 + 1;
            let path = read_path(&section, PathTopology::numbered(number, name), table.clone())?;
            topology.paths.push(path);
        }
        topology.check()?;
        let mut events = file
            .event
            .into_iter()
            .map(|table| read_event(&topology, table))
            .collect::<Result<Vec<_>, _>>()?;
        events.sort_by_key(|event| event.at);
        Ok(Self { topology, events })
    }
}

/// Removes a key from a table and parses its value.
fn parse_key<T: serde::de::DeserializeOwned>(
    section: &str,
    table: &mut Table,
    key: &str,
) -> Result<Option<T>, EmulatorError> {
    let read = |value: Value| {
        value.try_into().map_err(|cause: toml::de::Error| {
            refused(&format!("{section}.{key}"), in_words_of_the_file(&cause))
        })
    };
    table.remove(key).map(read).transpose()
}

fn read_path(
    section: &str,
    mut path: PathTopology,
    mut table: Table,
) -> Result<PathTopology, EmulatorError> {
    let wrong = |cause: LinkSpecError| refused(section, cause);
    let directions = [("forward", LinkDirection::Forward), ("backward", LinkDirection::Backward)]
        .map(|(key, direction)| -> Result<_, EmulatorError> {
            Ok((direction, parse_key::<Table>(section, &mut table, key)?.unwrap_or_default()))
        });
    let middleboxes: Vec<MiddleboxSpec> =
        parse_key(section, &mut table, "middlebox")?.unwrap_or_default();
    path.middleboxes =
        MiddleboxConfig::from_specs(&middleboxes).map_err(|cause| refused(section, cause))?;
    if let Some(mtu) = parse_key::<u32>(section, &mut table, "interface-mtu")? {
        path.mtu = mtu;
    }
    if parse_key(section, &mut table, "ipv4")? == Some(false) {
        path.ipv4 = None;
    }
    if parse_key(section, &mut table, "ipv6")? == Some(false) {
        path.ipv6 = None;
    }
    let mut spec = LinkSpec::default();
    spec.read_table(&table).map_err(wrong)?;
    spec.apply(&mut path.forward);
    spec.apply(&mut path.backward);
    for direction_and_table in directions {
        let (direction, table) = direction_and_table?;
        let mut spec = LinkSpec::default();
        spec.read_table(&table).map_err(wrong)?;
        spec.apply(path.link_mut(direction));
    }
    Ok(path)
}

fn read_event(topology: &Topology, mut table: Table) -> Result<ScenarioEvent, EmulatorError> {
    let section = "event";
    let at: TimeSpan = parse_key(section, &mut table, "at")?
        .ok_or_else(|| refused(section, "it has no time: at = \"10 s\""))?;
    let path: String = parse_key(section, &mut table, "path")?
        .or_else(|| topology.paths.first().map(|path| path.name.clone()))
        .unwrap_or_default();
    if topology.path(&path).is_none() {
        return Err(topology.no_such_path(&path));
    }
    let directions = match parse_key::<String>(section, &mut table, "direction")?.as_deref() {
        None | Some("both") => BOTH.to_vec(),
        Some("forward") => vec![LinkDirection::Forward],
        Some("backward") => vec![LinkDirection::Backward],
        Some(name) => {
            let reason = format!("{name:?} is neither forward (from the client) nor backward");
            return Err(refused(section, reason));
        }
    };
    let mut spec = LinkSpec::default();
    spec.read_table(&table).map_err(|cause| refused(section, cause))?;
    if spec.is_empty() {
        return Err(refused(section, "it has no change: give loss, delay, rate, up, …"));
    }
    Ok(ScenarioEvent { at: at.0, path, directions, spec })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
        seed = 7
        [path.wifi]
        rate = "20 Mbit/s"
        delay = "10 ms"
        [path.wifi.backward]
        rate = "50 Mbit/s"
        [[path.wifi.middlebox]]
        kind = "nat"
        [[path.wifi.middlebox]]
        kind = "firewall"
        drops = ["sctp"]
        [path.lte]
        delay = "40 ms"
        ipv4 = false
        interface-mtu = 1400
        [[event]]
        at = "10 s"
        path = "wifi"
        loss = "10 %"
        [[event]]
        at = "5 s"
        path = "lte"
        direction = "forward"
        up = false
    "#;

    #[test]
    fn a_file_has_a_network_and_its_events() {
        let scenario = Scenario::parse(EXAMPLE).unwrap();
        let wifi = scenario.topology.path("wifi").unwrap();
        assert_eq!((wifi.forward.rate, wifi.backward.rate), (Some(20_000_000), Some(50_000_000)));
        assert_eq!(wifi.middleboxes.len(), 2);
        let lte = scenario.topology.path("lte").unwrap();
        assert_eq!((lte.ipv4, lte.mtu), (None, 1400));
        let times: Vec<u64> = scenario.events.iter().map(|event| event.at.as_secs()).collect();
        assert_eq!(times, [5, 10], "sorted");
        assert_eq!(scenario.events[0].directions, [LinkDirection::Forward]);
        assert_eq!(scenario.events[0].spec.up, Some(false));
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text: &str| Scenario::parse(text).unwrap_err().to_string();
        assert!(error("[path]").contains("1 to 32 paths"));
        assert!(error("[path.a]\nlatency = '1 ms'").starts_with("path.a: latency: unknown"));
        assert!(error("[path.a]\n[[path.a.middlebox]]\nkind = 'wall'").contains("wall"));
        assert!(error("[path.a]\n[[event]]\nat = '1 s'").contains("it has no change"));
        assert!(error("[path.a]\n[[event]]\nat='1 s'\npath='b'\nup=true").contains("there are a"));
        assert!(error("[path.'a b']").contains("cannot name a path"));
        assert!(error("[path.a]\nipv4=false\nipv6=false").contains("neither"));
        assert!(error("[path.a]\nrate=\n").contains("line 2"));
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "(\\[path\\.[a-z]{0,3}\\]\n|[a-z]{1,6} = ['\"]?[a-z0-9 %]{0,6}['\"]?\n){0,8}") {
            let _ = Scenario::parse(&text);
        }
    }
}
