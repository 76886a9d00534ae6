//! The command line.

use std::net::IpAddr;
use std::time::Duration;

/// The options before the steps.
pub(crate) struct Options {
    pub(crate) listens: bool,
    pub(crate) local: Vec<IpAddr>,
    pub(crate) remote: Vec<IpAddr>,
    pub(crate) port: u16,
    pub(crate) local_port: u16,
    /// UDP ports: local and remote.
    pub(crate) udp: Option<(u16, u16)>,
    pub(crate) streams: u16,
    pub(crate) echo: bool,
    pub(crate) interleave: bool,
    pub(crate) asconf: bool,
    pub(crate) zero_checksum: bool,
    pub(crate) multipath: bool,
    /// How long to answer packets after the report.
    pub(crate) stay: Duration,
}

/// Returns the options, and the steps after them.
pub(crate) fn parse(words: &[String]) -> Result<(Options, Vec<String>), String> {
    let mut rest = words.iter();
    let listens = match rest.next().map(String::as_str) {
        Some("listen") => true,
        Some("connect") => false,
        _ => return Err("peer connect|listen [OPTION]... STEP...".into()),
    };
    let mut options = Options {
        listens,
        local: Vec::new(),
        remote: Vec::new(),
        port: 5000,
        local_port: 0,
        udp: None,
        streams: 16,
        echo: false,
        interleave: false,
        asconf: false,
        zero_checksum: false,
        multipath: false,
        stay: Duration::ZERO,
    };
    while let Some(word) = rest.next() {
        let Some(name) = word.strip_prefix("--") else {
            let steps = std::iter::once(word).chain(rest).cloned().collect();
            return Ok((options, steps));
        };
        match name {
            "echo" => options.echo = true,
            "interleave" => options.interleave = true,
            "asconf" => options.asconf = true,
            "zero-checksum" => options.zero_checksum = true,
            "multipath" => options.multipath = true,
            _ => {
                let value = rest.next().ok_or_else(|| format!("--{name} needs a value"))?;
                with_value(&mut options, name, value)?;
            }
        }
    }
    Ok((options, Vec::new()))
}

fn with_value(options: &mut Options, name: &str, value: &str) -> Result<(), String> {
    match name {
        "local" => options.local = addresses(value)?,
        "remote" => options.remote = addresses(value)?,
        "port" => options.port = number(value)?,
        "local-port" => options.local_port = number(value)?,
        "streams" => options.streams = number(value)?,
        "stay" => options.stay = Duration::from_secs(number(value)?),
        "udp" => {
            let (local, remote) = value.split_once(',').ok_or("--udp needs LOCAL,REMOTE")?;
            options.udp = Some((number(local)?, number(remote)?));
        }
        _ => return Err(format!("unknown option --{name}")),
    }
    Ok(())
}

/// Parses a comma-separated list of addresses.
pub(crate) fn addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    text.split(',').map(|one| one.parse().map_err(|_| format!("{one} is not an address"))).collect()
}

/// Parses a number of any type.
pub(crate) fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a valid number"))
}
