//! Owner names and target names.

use alloc::string::String;

use super::record::ServiceRecord;

/// The maximum length of a name in presentation form, without the trailing dot (RFC 1035 §2.3.4).
const MAX_NAME: usize = 253;

/// The maximum length of a label in octets (RFC 1035 §2.3.4).
const MAX_LABEL: usize = 63;

/// Converts a TargetName from the wire to the form in which names are compared; `None` if it is not
/// a name that can be queried. The root, an empty name, must be handled by the caller.
pub(super) fn target_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let fits = name.len() <= MAX_NAME
        && name.split('.').all(|label| (1..=MAX_LABEL).contains(&label.len()))
        && name.bytes().all(|octet| octet.is_ascii_graphic());
    fits.then(|| name.to_ascii_lowercase())
}

/// Returns the names other than the host's own to which the records refer, each once, most
/// preferred record first.
pub(super) fn referenced<'a>(
    records: &'a [ServiceRecord],
    host: &'a str,
) -> impl Iterator<Item = &'a str> {
    records
        .iter()
        .enumerate()
        .filter(move |(at, record)| {
            record.name != host && records[..*at].iter().all(|earlier| earlier.name != record.name)
        })
        .map(|(_, record)| record.name.as_str())
}
