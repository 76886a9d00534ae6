//! Which addresses the host prefers (gai.conf(5)).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use eyas_race::policy::{AddressTable, PrefixValue};

/// Where it is.
pub(super) const PATH: &str = "/etc/gai.conf";

/// The maximum number of lines of a kind that count.
const MAX_LINES: usize = 256;
/// The values for all addresses that no line covers, as in glibc.
const PRECEDENCE: u32 = 40;
const LABEL: u32 = 1;
const SCOPE: u32 = 14;

/// Reads the file's contents. Lines of one kind replace the defaults of that kind whole; `None` if
/// there are none.
pub(super) fn parse(contents: &[u8]) -> Option<Arc<AddressTable>> {
    let text = String::from_utf8_lossy(contents);
    let (mut precedences, mut labels, mut scopes) = (Vec::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let mut fields = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let (Some(kind), Some(prefix), Some(value)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (list, row) = match kind {
            "precedence" => (&mut precedences, row(prefix, value)),
            "label" => (&mut labels, row(prefix, value)),
            "scopev4" => (&mut scopes, scope(prefix, value)),
            _ => continue,
        };
        if list.len() < MAX_LINES
            && let Some(row) = row
        {
            list.push(row);
        }
    }
    if precedences.is_empty() && labels.is_empty() && scopes.is_empty() {
        return None;
    }
    let mut table = AddressTable::default();
    for (list, replaced, rest) in [
        (precedences, &mut table.precedences, PRECEDENCE),
        (labels, &mut table.labels, LABEL),
        (scopes, &mut table.scopes, SCOPE),
    ] {
        if !list.is_empty() {
            *replaced = list;
            replaced.push(PrefixValue { prefix: Ipv6Addr::UNSPECIFIED, len: 0, value: rest });
            // The longest prefix counts, and the first line with it.
            replaced.sort_by_key(|row| u8::MAX - row.len);
        }
    }
    Some(Arc::new(table))
}

fn row(prefix: &str, value: &str) -> Option<PrefixValue> {
    let (prefix, len) = match prefix.split_once('/') {
        Some((prefix, len)) => (prefix, len.parse().ok().filter(|len| *len <= 128)?),
        None => (prefix, 128),
    };
    let value = value.parse().ok().filter(|value| i32::try_from(*value).is_ok())?;
    Some(PrefixValue { prefix: prefix.parse().ok()?, len, value })
}

/// Reads the scope of IPv4 addresses, whose prefix may be written as IPv4 or as IPv4-mapped.
fn scope(prefix: &str, value: &str) -> Option<PrefixValue> {
    let (address, len) = prefix.split_once('/').map_or((prefix, None), |(a, len)| (a, Some(len)));
    if let Ok(v4) = address.parse::<Ipv4Addr>() {
        let len: u8 = len.map_or(Some(32), |len| len.parse().ok())?;
        let mapped = v4.to_ipv6_mapped();
        return (len <= 32)
            .then_some(())
            .and_then(|()| row(&format!("{mapped}/{}", 96 + len), value));
    }
    row(prefix, value).filter(|row| row.prefix.to_ipv4_mapped().is_some() && row.len >= 96)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(list: &[PrefixValue]) -> Vec<String> {
        list.iter().map(|row| format!("{}/{} {}", row.prefix, row.len, row.value)).collect()
    }

    #[test]
    fn lines_of_a_kind_replace_its_defaults() {
        let defaults = AddressTable::default();
        let table = parse(b"# x\nprecedence  ::ffff:0:0/96  100 # IPv4\n").unwrap();
        assert_eq!(rows(&table.precedences), ["::ffff:0.0.0.0/96 100", "::/0 40"]);
        assert_eq!(table.labels, defaults.labels);
        let table = parse(b"label fd00::/8 1\nlabel ::/0 7\nlabel ::1 3").unwrap();
        assert_eq!(rows(&table.labels), ["::1/128 3", "fd00::/8 1", "::/0 7", "::/0 1"]);
        assert_eq!(table.precedences, defaults.precedences);
    }

    #[test]
    fn scopes_are_those_of_ipv4() {
        let lines = b"scopev4 ::ffff:10.0.0.0/104 5\nscopev4 169.254.0.0/16 2\nscopev4 10.1.1.1 3";
        let table = parse(lines).unwrap();
        assert_eq!(
            rows(&table.scopes),
            [
                "::ffff:10.1.1.1/128 3",
                "::ffff:169.254.0.0/112 2",
                "::ffff:10.0.0.0/104 5",
                "::/0 14"
            ]
        );
        assert_eq!(table.precedences, AddressTable::default().precedences);
    }

    #[test]
    fn other_lines_are_ignored() {
        for contents in [
            "",
            "#precedence ::ffff:0:0/96 100",
            "reload yes",
            "scopev4 2001:db8::/96 14",
            "scopev4 ::ffff:0.0.0.0/95 14",
            "scopev4 0.0.0.0/33 14",
            "scopev4 0.0.0.0/0 x",
            "precedence 192.0.2.0/24 100",
            "precedence ::/129 1",
            "precedence ::/0 -1",
            "precedence ::/0 4294967295",
            "precedence ::/0",
            "Precedence ::/0 1",
        ] {
            assert_eq!(parse(contents.as_bytes()), None, "{contents:?}");
        }
    }
}
