//! Certificates that are themselves trusted: with `CA:TRUE` and without, and what still counts.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use crate::{SecurityParameters, certificates_from_pem};

use super::*;

/// 2026-11-22 20:00 UTC.
const NOW: u64 = 1_795_377_600;

fn made(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
    let mut parameters = CertificateParams::new(["a.test".to_owned()]).expect("a name");
    // As `openssl req -x509` makes it.
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2027, 1, 1);
    change(&mut parameters);
    let key = KeyPair::generate().expect("a key");
    parameters.self_signed(&key).expect("a certificate").der().clone()
}

fn verify(trust: &SecurityParameters, shown: &CertificateDer<'_>, name: &str) -> Result<(), Error> {
    let verifier = trust.server_verifier().expect("a verifier");
    let name = ServerName::try_from(name).expect("a name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    verifier.verify_server_cert(shown, &[], &name, &[], now).map(drop)
}

fn roots(anchors: &[&CertificateDer<'static>]) -> SecurityParameters {
    SecurityParameters::platform().with_roots(anchors.iter().map(|&anchor| anchor.clone()))
}

#[test]
fn a_certificate_that_is_itself_trusted_is_accepted() {
    let own = made(|_| {});
    let plain = made(|parameters| parameters.is_ca = IsCa::NoCa);
    let limited = made(|parameters| {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let other = made(|_| {});
    for shown in [&own, &plain, &limited] {
        verify(&roots(&[&other, shown]), shown, "a.test").expect("trusted");
        let added = SecurityParameters::platform().with_added_root(shown.clone());
        verify(&added, shown, "a.test").expect("trusted in addition");
        verify(&roots(&[&other]), shown, "a.test").expect_err("not trusted");
        verify(&SecurityParameters::platform(), shown, "a.test").expect_err("not trusted");
    }
}

#[test]
fn trust_does_not_replace_names_dates_and_purposes() {
    let fault = |shown: &CertificateDer<'static>, name| match verify(&roots(&[shown]), shown, name)
        .expect_err(name)
    {
        Error::InvalidCertificate(fault) => fault,
        other => panic!("{other}"),
    };
    use CertificateError as Why;
    assert!(matches!(fault(&made(|_| {}), "b.test"), Why::NotValidForNameContext { .. }));
    let old = made(|parameters| parameters.not_after = rcgen::date_time_ymd(2026, 2, 1));
    assert!(matches!(fault(&old, "a.test"), Why::ExpiredContext { .. }));
    let early = made(|parameters| parameters.not_before = rcgen::date_time_ymd(2026, 12, 1));
    assert!(matches!(fault(&early, "a.test"), Why::NotValidYetContext { .. }));
    let client = made(|parameters| {
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    assert!(matches!(fault(&client, "a.test"), Why::InvalidPurpose));
}

#[test]
fn the_same_key_in_another_certificate_is_not_the_trusted_one() {
    let key = KeyPair::generate().expect("a key");
    let with = |serial: u64| {
        let mut parameters = CertificateParams::new(["a.test".to_owned()]).expect("a name");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.serial_number = Some(serial.into());
        parameters.self_signed(&key).expect("a certificate").der().clone()
    };
    verify(&roots(&[&with(1)]), &with(2), "a.test").expect_err("another certificate");
}

#[test]
fn a_certificate_of_version_1_and_one_of_p_521_are_named() {
    let version_1 = certificates_from_pem(include_bytes!("version-1.pem")).expect("a certificate");
    let p_521 = certificates_from_pem(include_bytes!("p521.pem")).expect("a certificate");
    let name = ServerName::try_from("a.test").expect("a name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    let described = |shown: &CertificateDer<'static>, error| match error {
        Error::InvalidCertificate(why) => {
            super::super::fault_text::describe(shown, &why, &name, now)
        }
        other => panic!("{other}"),
    };
    let error = verify(&roots(&[&version_1[0]]), &version_1[0], "a.test").expect_err("no names");
    let text = described(&version_1[0], error);
    assert!(text.contains("old version of X.509"), "{text}");
    let unsupported = Error::from(CertificateError::UnsupportedSignatureAlgorithmContext {
        signature_algorithm_id: Vec::new(),
        supported_algorithms: Vec::new(),
    });
    let text = described(&p_521[0], unsupported);
    assert!(text.contains("P-521"), "{text}");
}
