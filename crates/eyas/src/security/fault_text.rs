//! Texts that describe certificates, and what is wrong with them.

use std::net::IpAddr;
use std::time::Duration;

use rustls::CertificateError;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::{DateTime, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use crate::printable::printable;

/// The prefixes of the texts, from which the fault can be parsed.
pub(super) const CERTIFICATE: &str = "the certificate";
pub(super) const EXPIRED: &str = "the certificate expired ";
pub(super) const ISSUER_EXPIRED: &str = "the certificate depends on one that expired ";
pub(super) const NOT_YET: &str = "the certificate is not valid before ";
pub(super) const ISSUER_NOT_YET: &str = "the certificate depends on one that is not valid before ";
pub(super) const NAMES: &str = "the certificate is for ";
pub(super) const SELF_SIGNED: &str = "the certificate is self-signed";
pub(super) const ISSUER: &str = "the certificate's issuer";

/// The maximum number of names that are shown.
const MAX_NAMES: usize = 6;

/// The maximum number of characters that are shown of a name, because the peer chooses it.
const MAX_LENGTH: usize = 64;

/// The fields of a certificate that are shown.
struct CertificateSummary {
    subject: String,
    issuer: String,
    self_signed: bool,
    names: Vec<String>,
    not_before: u64,
    not_after: u64,
    is_version_3: bool,
    /// The algorithm and hash of its signature.
    signature: String,
}

/// Algorithms of signatures that are in use, and that the provider of cryptography lacks.
const SIGNATURES: [(&str, &str); 8] = [
    ("1.2.840.10045.4.3.4", "ECDSA and SHA-512, as keys of P-521 do"),
    ("1.2.840.10045.4.3.1", "ECDSA and SHA-224"),
    ("1.2.840.10045.4.1", "ECDSA and SHA-1"),
    ("1.2.840.113549.1.1.5", "RSA and SHA-1"),
    ("1.2.840.113549.1.1.4", "RSA and MD5"),
    ("1.2.840.113549.1.1.10", "RSASSA-PSS with these parameters"),
    ("1.3.101.113", "Ed448"),
    ("2.16.840.1.101.3.4.3.2", "DSA and SHA-256"),
];

/// Describes what is wrong with a certificate, including its subject and since when. `now` is when
/// it was verified.
pub(super) fn describe(
    certificate: &CertificateDer<'_>,
    why: &CertificateError,
    requested: &ServerName<'_>,
    now: UnixTime,
) -> String {
    use CertificateError as Why;
    let Some(summary) = CertificateSummary::read(certificate) else {
        return describe_unparsed(why, requested, now);
    };
    let what = match why {
        Why::Expired => day(EXPIRED, "on ", summary.not_after, now),
        Why::ExpiredContext { not_after, .. } => {
            let at = not_after.as_secs();
            day(if at == summary.not_after { EXPIRED } else { ISSUER_EXPIRED }, "on ", at, now)
        }
        Why::NotValidYet => day(NOT_YET, "", summary.not_before, now),
        Why::NotValidYetContext { not_before, .. } => {
            let at = not_before.as_secs();
            day(if at == summary.not_before { NOT_YET } else { ISSUER_NOT_YET }, "", at, now)
        }
        Why::NotValidForName | Why::NotValidForNameContext { .. } => {
            format!("{NAMES}{}, not for {}", summary.names_text(), requested.to_str())
        }
        Why::UnknownIssuer if summary.self_signed => {
            format!("{SELF_SIGNED}, and not trusted here")
        }
        Why::UnknownIssuer => {
            let fault = format!("{ISSUER} {:?} is not trusted here", summary.issuer);
            return format!("{fault} (subject {:?})", summary.subject);
        }
        Why::Revoked => format!("{CERTIFICATE} was revoked"),
        Why::BadSignature => format!("{CERTIFICATE} has an invalid signature"),
        Why::BadEncoding => format!("{CERTIFICATE} cannot be parsed"),
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            format!("{CERTIFICATE} is not meant for servers")
        }
        Why::UnhandledCriticalExtension => {
            format!("{CERTIFICATE} has an unknown critical extension")
        }
        #[allow(deprecated)]
        Why::UnsupportedSignatureAlgorithm
        | Why::UnsupportedSignatureAlgorithmContext { .. }
        | Why::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!("{CERTIFICATE} is signed with {}, which is not supported", summary.signature)
        }
        Why::Other(_) if !summary.is_version_3 => format!(
            "{CERTIFICATE} is of an old version of X.509, which cannot say for which names it is: \
             it has to be made anew, as version 3"
        ),
        Why::Other(other) => {
            format!("{CERTIFICATE} is not accepted: {}", spaced(&other.0.to_string()))
        }
        other => format!("{CERTIFICATE} is not accepted: {}", spaced(&other.to_string())),
    };
    format!("{what} ({})", summary.subject_and_issuer())
}

/// Describes the same for a certificate that rustls can parse and this stricter parser cannot.
fn describe_unparsed(why: &CertificateError, requested: &ServerName<'_>, now: UnixTime) -> String {
    use CertificateError as Why;
    match why {
        Why::ExpiredContext { not_after, .. } => day(EXPIRED, "on ", not_after.as_secs(), now),
        Why::NotValidYetContext { not_before, .. } => day(NOT_YET, "", not_before.as_secs(), now),
        Why::NotValidForName | Why::NotValidForNameContext { .. } => {
            format!("{NAMES}other names, not for {}", requested.to_str())
        }
        Why::UnknownIssuer => format!("{ISSUER} is not trusted here"),
        _ => format!("{CERTIFICATE} cannot be parsed"),
    }
}

impl CertificateSummary {
    fn read(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let parts = certificate.tbs_certificate();
        let alternatives = parts.get_extension::<SubjectAltName>().ok().flatten();
        let names = alternatives.iter().flat_map(|(_, names)| &names.0).filter_map(name_text);
        let names: Vec<String> = names.collect();
        let validity = parts.validity();
        Some(Self {
            subject: entity(parts.subject())
                .or_else(|| names.first().cloned())
                .unwrap_or_else(|| "(none)".to_owned()),
            issuer: entity(parts.issuer()).unwrap_or_else(|| "(none)".to_owned()),
            self_signed: parts.subject() == parts.issuer(),
            names,
            not_before: validity.not_before.to_unix_duration().as_secs(),
            not_after: validity.not_after.to_unix_duration().as_secs(),
            is_version_3: parts.version() == Version::V3,
            signature: signature_name(&certificate.signature_algorithm().oid.to_string()),
        })
    }

    fn subject_and_issuer(&self) -> String {
        match self.self_signed {
            true => format!("subject and issuer {:?}", self.subject),
            false => format!("subject {:?}, issuer {:?}", self.subject, self.issuer),
        }
    }

    fn names_text(&self) -> String {
        let (shown, more) = self.names.split_at(self.names.len().min(MAX_NAMES));
        let mut shown = shown.to_vec();
        if !more.is_empty() {
            shown.push(format!("{} more", more.len()));
        }
        match shown.split_last() {
            None => "no name at all".to_owned(),
            Some((only, [])) => only.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        }
    }
}

/// Returns the name of a signature's algorithm, or its object identifier.
fn signature_name(oid: &str) -> String {
    let known = SIGNATURES.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
    known.map_or_else(|| format!("the algorithm {oid}"), str::to_owned)
}

fn name_text(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(bounded(name.as_str())),
        GeneralName::IpAddress(octets) => {
            let ip = match octets.as_bytes().len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(octets.as_bytes()).ok()?),
                _ => IpAddr::from(<[u8; 16]>::try_from(octets.as_bytes()).ok()?),
            };
            Some(ip.to_string())
        }
        _ => None,
    }
}

/// Returns the entity of a distinguished name: its common name, or a substitute.
fn entity(name: &Name) -> Option<String> {
    let common = name.common_name().ok().flatten();
    let unit = || name.organization_unit().ok().flatten();
    let organisation = || name.organization().ok().flatten();
    let text = common.or_else(organisation).or_else(unit);
    // They are quoted, which escapes what a terminal would obey.
    text.map(|text| truncated(&text.value()))
        .or_else(|| (!name.is_empty()).then(|| truncated(&name.to_string())))
}

/// Escapes characters of the peer's text that a terminal would obey, and truncates it.
fn bounded(text: &str) -> String {
    truncated(&printable(text))
}

fn truncated(text: &str) -> String {
    match text.chars().count() > MAX_LENGTH {
        true => text.chars().take(MAX_LENGTH - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

/// Formats a day, and how far it is from now.
fn day(what: &str, on: &str, at: u64, now: UnixTime) -> String {
    let now = now.as_secs();
    let near = at.abs_diff(now) < 2 * DAY;
    let date = DateTime::from_unix_duration(Duration::from_secs(at)).map(|date| {
        let day = format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day());
        match near {
            true => format!("{day} {:02}:{:02} UTC", date.hour(), date.minutes()),
            false => day,
        }
    });
    let date = date.unwrap_or_else(|_| "an invalid date".to_owned());
    let span = span(at.abs_diff(now));
    match at <= now {
        true => format!("{what}{on}{date}, {span} ago"),
        false => format!("{what}{on}{date}, in {span}"),
    }
}

const DAY: u64 = 86_400;

fn span(seconds: u64) -> String {
    let units = [(365 * DAY, "years"), (DAY, "days"), (3_600, "hours"), (60, "minutes")];
    let unit = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    let (length, name) = unit.unwrap_or((1, "seconds"));
    format!("{} {name}", seconds / length)
}

/// Converts the name of a variant to words: `CaUsedAsEndEntity` becomes `ca used as end entity`.
fn spaced(text: &str) -> String {
    if text.contains(|letter: char| !letter.is_ascii_alphanumeric()) {
        return bounded(text);
    }
    let mut words = String::new();
    for letter in text.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    bounded(&words)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
    use rustls::OtherError;

    use super::*;

    /// 2026-11-22 20:00 UTC.
    const NOW: u64 = 1_795_377_600;

    fn certificate(names: &[&str], subject: &str) -> CertificateDer<'static> {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, subject);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        params.self_signed(&key).expect("a certificate").der().clone()
    }

    fn summarize(certificate: &CertificateDer<'_>, why: &CertificateError) -> String {
        let requested = ServerName::try_from("wrong.test").expect("a name");
        describe(certificate, why, &requested, UnixTime::since_unix_epoch(Duration::from_secs(NOW)))
    }

    #[test]
    fn every_fault_is_described_with_subject_and_date() {
        let self_signed = certificate(&["a.test", "127.0.0.1", "::1"], "Example CA");
        let names = "(subject and issuer \"Example CA\")";
        for (why, text) in [
            (CertificateError::Expired, "the certificate expired on 2002-01-01, 24 years ago"),
            (
                CertificateError::NotValidForName,
                "the certificate is for a.test, 127.0.0.1 and ::1, not for wrong.test",
            ),
            (
                CertificateError::UnknownIssuer,
                "the certificate is self-signed, and not trusted here",
            ),
            (CertificateError::Revoked, "the certificate was revoked"),
        ] {
            assert_eq!(summarize(&self_signed, &why), format!("{text} {names}"));
        }
        let garbage = CertificateDer::from(vec![1, 2, 3]);
        for (why, text) in [
            (CertificateError::BadEncoding, "the certificate cannot be parsed"),
            (CertificateError::UnknownIssuer, "the certificate's issuer is not trusted here"),
        ] {
            assert_eq!(summarize(&garbage, &why), text);
        }
    }

    #[test]
    fn an_expired_issuer_is_described() {
        let self_signed = certificate(&["a.test"], "Example CA");
        let time = |secs| UnixTime::since_unix_epoch(Duration::from_secs(secs));
        let expired =
            |at| CertificateError::ExpiredContext { time: time(NOW), not_after: time(at) };
        let reported = summarize(&self_signed, &expired(NOW - 3 * 3_600));
        assert!(reported.starts_with(ISSUER_EXPIRED), "{reported}");
        assert!(reported.contains("on 2026-11-22 17:00 UTC, 3 hours ago"), "{reported}");
        let early = CertificateError::NotValidYetContext {
            time: time(NOW),
            not_before: time(NOW + 9 * DAY),
        };
        let reported = summarize(&self_signed, &early);
        assert!(reported.contains("is not valid before 2026-12-01, in 9 days"), "{reported}");
    }

    #[test]
    fn error_variants_are_shown_as_words() {
        let self_signed = certificate(&["a.test"], "Example CA");
        let other = OtherError(std::sync::Arc::new(std::io::Error::other("CaUsedAsEndEntity")));
        let reported = summarize(&self_signed, &CertificateError::Other(other));
        assert!(reported.contains("not accepted: ca used as end entity ("), "{reported}");
        let reported = summarize(&self_signed, &CertificateError::UnknownRevocationStatus);
        assert!(reported.contains("not accepted: unknown revocation status ("), "{reported}");
    }

    #[test]
    fn names_from_the_peer_are_bounded_and_escaped() {
        let long = "x".repeat(500);
        let self_signed = certificate(&["a.test"], &format!("\u{1b}[2J{long}"));
        let reported = summarize(&self_signed, &CertificateError::Revoked);
        assert!(reported.len() < 200 && reported.contains(r"\u{1b}[2Jx"), "{reported:?}");
        let turned = certificate(&["a.test"], "moc.elpmaxe\u{202e}\u{9b}31m");
        let reported = summarize(&turned, &CertificateError::Revoked);
        assert!(reported.contains(r"moc.elpmaxe\u{202e}\u{9b}31m"), "{reported:?}");
        let many: Vec<String> = (0..100).map(|number| format!("n{number}.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let reported = summarize(&certificate(&many, "x"), &CertificateError::NotValidForName);
        assert!(reported.contains("n5.test and 94 more, not for wrong.test"), "{reported}");
    }
}
