//! The hosts file, as the files database of glibc reads it (hosts(5)).

use std::collections::BTreeMap;
use std::net::IpAddr;

use eyas_race::dns::{DnsFailure, DnsRecords, RecordType};

use super::super::MAX_RECORDS;

/// Where it is.
pub(super) const PATH: &str =
    if cfg!(windows) { r"C:\Windows\System32\drivers\etc\hosts" } else { "/etc/hosts" };

/// Where it stands whether every line with a name counts, or only the first (host.conf(5)).
pub(super) const HOST_CONF_PATH: &str = "/etc/host.conf";

/// Returns whether every line of the hosts file with a name counts, by the contents of `host.conf`.
/// Without the file only the first line does.
pub(super) fn takes_every_line(host_conf: &[u8]) -> bool {
    let text = String::from_utf8_lossy(host_conf);
    let mut values = text.lines().filter_map(|line| {
        let mut fields = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let keyword = fields.next()?;
        keyword.eq_ignore_ascii_case("multi").then_some(())?;
        is_on(fields.next()?)
    });
    values.next_back().unwrap_or(false)
}

/// Reads a switch of host.conf(5): as in glibc, its first letters count.
pub(super) fn is_on(value: &str) -> Option<bool> {
    let begins = |word: &str| {
        value.get(..word.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(word))
    };
    [("on", true), ("off", false)]
        .into_iter()
        .find_map(|(word, is_on)| begins(word).then_some(is_on))
}

/// The addresses of each name, in the order of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HostAddresses(BTreeMap<Box<str>, Vec<IpAddr>>);

impl HostAddresses {
    /// Reads the file's contents. A line whose address is none is ignored, and so is one whose
    /// address has a zone, as glibc does.
    pub(super) fn parse(contents: &[u8]) -> Self {
        let mut names: BTreeMap<Box<str>, Vec<IpAddr>> = BTreeMap::new();
        for line in contents.split(|octet| *octet == b'\n') {
            // To glibc a line is a string of C, which a NUL ends.
            let line = line.split(|octet| matches!(octet, b'#' | 0)).next().unwrap_or_default();
            let mut fields = line.split(|octet| is_blank(*octet)).filter(|field| !field.is_empty());
            let Some(address) = fields.next().and_then(address) else { continue };
            for name in fields.filter_map(normalised) {
                let addresses = names.entry(name).or_default();
                if addresses.len() < MAX_RECORDS && !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        Self(names)
    }

    /// Returns whether the name, in lower case and without a trailing dot, stands there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the answer for a name that stands there, in its first line or in every one. It is
    /// complete: a name with addresses of one family has none of the other, and it has no HTTPS
    /// records.
    pub(super) fn answer(
        &self,
        name: &str,
        every_line: bool,
        record_type: RecordType,
    ) -> Option<Result<DnsRecords, DnsFailure>> {
        let addresses = self.0.get(name)?;
        let counted = if every_line { addresses.len() } else { 1 };
        Some(records(addresses.get(..counted).unwrap_or(addresses), record_type))
    }
}

/// Returns the records of this type that these addresses make.
pub(super) fn records(
    addresses: &[IpAddr],
    record_type: RecordType,
) -> Result<DnsRecords, DnsFailure> {
    let v6 = addresses.iter().filter_map(|address| match address {
        IpAddr::V6(v6) => Some(*v6),
        IpAddr::V4(_) => None,
    });
    let v4 = addresses.iter().filter_map(|address| match address {
        IpAddr::V4(v4) => Some(*v4),
        IpAddr::V6(_) => None,
    });
    let records = match record_type {
        RecordType::Https => return Err(DnsFailure::NoData),
        RecordType::Aaaa => DnsRecords::Aaaa(v6.collect()),
        RecordType::A => DnsRecords::A(v4.collect()),
    };
    match &records {
        DnsRecords::Aaaa(addresses) if addresses.is_empty() => Err(DnsFailure::NoData),
        DnsRecords::A(addresses) if addresses.is_empty() => Err(DnsFailure::NoData),
        _ => Ok(records),
    }
}

/// Returns whether isspace(3) takes the octet for a blank.
pub(super) const fn is_blank(octet: u8) -> bool {
    octet.is_ascii_whitespace() || octet == 0x0b
}

fn address(field: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = str::from_utf8(field).ok()?.parse().ok()?;
    Some(address.to_canonical())
}

fn normalised(field: &[u8]) -> Option<Box<str>> {
    let name = str::from_utf8(field).ok()?;
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty()).then(|| name.to_ascii_lowercase().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(contents: &str, name: &str) -> Option<Vec<String>> {
        let hosts = HostAddresses::parse(contents.as_bytes());
        let listed = hosts.0.get(name)?;
        Some(listed.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn lines_are_read_as_glibc_reads_them() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("192.0.2.1 a.test", Some(&["192.0.2.1"])),
            ("192.0.2.1 A.Test", Some(&["192.0.2.1"])),
            ("192.0.2.1\t b.test \t a.test", Some(&["192.0.2.1"])),
            ("  192.0.2.1 a.test", Some(&["192.0.2.1"])),
            ("192.0.2.1 a.test.", Some(&["192.0.2.1"])),
            ("192.0.2.1 a.test\r\n", Some(&["192.0.2.1"])),
            ("192.0.2.1 a.test#b", Some(&["192.0.2.1"])),
            ("192.0.2.1 b.test # a.test", None),
            ("# 192.0.2.1 a.test", None),
            ("#\n192.0.2.1 a.test", Some(&["192.0.2.1"])),
            ("192.0.2.1 aa.test a.tes", None),
            ("192.0.2.1", None),
            ("a.test 192.0.2.1", None),
            ("192.0.2.256 a.test", None),
            ("192.0.2 a.test", None),
            ("192.0.2.01 a.test", None),
            ("0.0.0.0 a.test", Some(&["0.0.0.0"])),
            (":: a.test", Some(&["::"])),
            ("2001:DB8::1 a.test", Some(&["2001:db8::1"])),
            ("[2001:db8::1] a.test", None),
            ("fe80::1%lo a.test", None),
            ("fe80::1%1 a.test\n192.0.2.1 a.test", Some(&["192.0.2.1"])),
            ("::ffff:192.0.2.1 a.test", Some(&["192.0.2.1"])),
            (
                "192.0.2.1 a.test\n2001:db8::1 b.test a.test\n192.0.2.1 a.test",
                Some(&["192.0.2.1", "2001:db8::1"]),
            ),
            ("192.0.2.1 \u{fc}.test a.test", Some(&["192.0.2.1"])),
            ("", None),
        ];
        for (contents, expected) in cases {
            let expected: Option<Vec<String>> =
                expected.map(|list| list.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(addresses(contents, "a.test"), expected, "{contents:?}");
        }
        let not_text =
            HostAddresses::parse(b"192.0.2.1 \xff a.test \xfe\n\xff\xfe\n\0 192.0.2.2 b\n");
        assert!(not_text.has("a.test") && !not_text.has("b"));
    }

    #[test]
    fn a_name_of_one_family_has_nothing_else() {
        let hosts = HostAddresses::parse(b"192.0.2.1 a.test\n2001:db8::1 b.test");
        let a = Ok(DnsRecords::A(vec!["192.0.2.1".parse().unwrap()]));
        let aaaa = Ok(DnsRecords::Aaaa(vec!["2001:db8::1".parse().unwrap()]));
        let answer = |name, record_type| hosts.answer(name, true, record_type);
        assert_eq!(answer("a.test", RecordType::A), Some(a));
        assert_eq!(answer("a.test", RecordType::Aaaa), Some(Err(DnsFailure::NoData)));
        assert_eq!(answer("a.test", RecordType::Https), Some(Err(DnsFailure::NoData)));
        assert_eq!(answer("b.test", RecordType::A), Some(Err(DnsFailure::NoData)));
        assert_eq!(answer("b.test", RecordType::Aaaa), Some(aaaa));
        assert_eq!(answer("c.test", RecordType::A), None);
    }

    #[test]
    fn host_conf_says_whether_every_line_counts() {
        for (host_conf, every) in [
            ("", false),
            ("multi on\n", true),
            ("order hosts,bind\n  MULTI\ton # x", true),
            ("multi on\nmulti off\n", false),
            ("multi off\nmulti on\n", true),
            ("#multi on\n", false),
            ("multion\n", false),
            ("multi\n", false),
            ("multi on,off\n", true),
            ("multi yes\n", false),
            ("multi on\nmulti yes\n", true),
        ] {
            assert_eq!(takes_every_line(host_conf.as_bytes()), every, "{host_conf:?}");
        }
        let hosts = HostAddresses::parse(b"192.0.2.1 a.test\n2001:db8::1 a.test");
        let a = Ok(DnsRecords::A(vec!["192.0.2.1".parse().unwrap()]));
        assert_eq!(hosts.answer("a.test", false, RecordType::A), Some(a));
        let aaaa = hosts.answer("a.test", false, RecordType::Aaaa);
        assert_eq!(aaaa, Some(Err(DnsFailure::NoData)));
    }

    #[test]
    fn the_number_of_addresses_of_a_name_is_limited() {
        let many: String =
            (0..2000u32).map(|n| format!("10.0.{}.{} a\n", n / 256, n % 256)).collect();
        assert_eq!(addresses(&many, "a").unwrap().len(), MAX_RECORDS);
    }
}
