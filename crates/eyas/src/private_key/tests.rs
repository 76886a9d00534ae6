//! Keys that OpenSSL wrote: every cipher and hash it offers, the wrong passphrase, damaged files.

use super::*;

const ENCRYPTED: &str = include_str!("encrypted.pem");
const PASSPHRASE: &str = "correct-horse";

/// Splits a file of several keys.
fn each(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.split_inclusive("PRIVATE KEY-----\n")
        .collect::<Vec<_>>()
        .chunks(2)
        .map(|pair| {
            let name = pair[0].lines().next().expect("a name");
            (name, pair.concat())
        })
        .collect::<Vec<_>>()
        .into_iter()
}

#[test]
fn encrypted_keys_are_decrypted() {
    let plain = private_key_from_pem(include_bytes!("p256.pem")).expect("a plain key");
    let mut count = 0;
    for (name, pem) in each(ENCRYPTED) {
        let key = private_key_from_encrypted_pem(pem.as_bytes(), PASSPHRASE).expect(name);
        if let PrivateKeyDer::Pkcs8(_) = key {
            assert_eq!(key.secret_der(), plain.secret_der(), "{name}");
        }
        rustls::crypto::ring::sign::any_supported_type(&key).expect(name);
        // Windows ends lines with CR LF.
        let crlf = pem.replace('\n', "\r\n");
        assert_eq!(private_key_from_encrypted_pem(crlf.as_bytes(), PASSPHRASE).expect(name), key);
        count += 1;
    }
    assert_eq!(count, 10);
}

#[test]
fn an_encrypted_key_says_so_and_a_wrong_passphrase_too() {
    for (name, pem) in each(ENCRYPTED) {
        let reported = private_key_from_pem(pem.as_bytes()).expect_err(name).to_string();
        assert!(reported.contains("encrypted"), "{name}: {reported}");
        for wrong in ["", "Correct-horse"] {
            let result = private_key_from_encrypted_pem(pem.as_bytes(), wrong);
            let reported = result.expect_err(name).to_string();
            assert!(reported.contains("does not fit"), "{name}: {reported}");
        }
    }
}

#[test]
fn a_passphrase_is_not_needed_for_a_plain_key() {
    let pem = include_bytes!("p256.pem");
    private_key_from_encrypted_pem(pem, PASSPHRASE).expect("a plain key");
    // The certificate may stand in the same file, and the first key counts.
    let both = [&pem[..], ENCRYPTED.as_bytes()].concat();
    private_key_from_pem(&both).expect("the plain key");
    let both = [ENCRYPTED.as_bytes(), &pem[..]].concat();
    private_key_from_pem(&both).expect_err("the encrypted key");
}

#[test]
fn what_is_not_supported_is_named() {
    let kinds = ["P-521", "P-521", "Ed448", "secp256k1"];
    let keys: Vec<_> = each(include_str!("unsupported.pem")).collect();
    assert_eq!(keys.len(), kinds.len());
    for ((name, pem), kind) in keys.iter().zip(kinds) {
        let reported = private_key_from_pem(pem.as_bytes()).expect_err(name).to_string();
        assert!(reported.contains(kind), "{reported}");
    }
}

#[test]
fn an_unsupported_encryption_is_named_with_the_command_that_converts_the_key() {
    let keys: Vec<_> = each(include_str!("unsupported-encryption.pem")).collect();
    assert_eq!(keys.len(), 14);
    for (title, pem) in keys {
        let (name, is_legacy) = match title.split_once(' ') {
            Some((name, _)) => (name, true),
            None => (title, false),
        };
        let result = private_key_from_encrypted_pem(pem.as_bytes(), PASSPHRASE);
        let reported = result.expect_err(name).to_string();
        let command = "openssl pkey -in KEY -aes256 -out NEW";
        assert!(reported.contains(&format!("encrypted with {name},")), "{name}: {reported}");
        assert!(reported.contains(command), "{name}: {reported}");
        assert_eq!(reported.contains("-provider legacy"), is_legacy, "{name}: {reported}");
    }
}

#[test]
fn damaged_files_are_errors() {
    for (name, pem) in each(ENCRYPTED) {
        // Deriving a key takes seconds in a test: only what comes before that is damaged.
        for length in (0..pem.len() / 2).step_by(7) {
            let _ = private_key_from_encrypted_pem(&pem.as_bytes()[..length], PASSPHRASE);
        }
        let changes = [("DEK-Info:", "X:"), ("CBC,", "CBC,zz"), ("AES-", "RC9-")];
        for (from, to) in changes.into_iter().filter(|(from, _)| pem.contains(from)) {
            let _ = private_key_from_encrypted_pem(pem.replace(from, to).as_bytes(), PASSPHRASE);
        }
        let cut = pem.replace("-----BEGIN", "");
        private_key_from_encrypted_pem(cut.as_bytes(), PASSPHRASE).expect_err(name);
    }
}
