//! Tests of private keys with a passphrase.

use std::ffi::CStr;

use super::{
    CallError, GREETING, accept_greeting, connect, connections, done, endpoint, free,
    listen_options, listener, new_handle, port,
};
use crate::{
    code::{Code, EYAS_INVALID, EYAS_TLS},
    endpoint::eyas_endpoint_new,
    endpoint_options::{
        EndpointOptions, eyas_endpoint_options_new, eyas_endpoint_options_set_client_certificate,
        eyas_endpoint_options_set_encrypted_client_certificate, eyas_endpoint_options_set_roots,
    },
    error::Failure,
    listen_options::{
        ListenOptions, eyas_listen_options_set_certificate,
        eyas_listen_options_set_encrypted_certificate,
    },
    pointer::{DataPointer, OutPointer, TextPointer},
    target::eyas_target_new,
};

const CERTIFICATE: &[u8] = include_bytes!("keys/certificate.pem");

/// The same key, encrypted in PKCS #8 and as OpenSSL used to.
const KEYS: [&[u8]; 2] =
    [include_bytes!("keys/encrypted.pem"), include_bytes!("keys/encrypted-sec1.pem")];

const PASSPHRASE: &CStr = c"correct-horse";

fn endpoint_options() -> Box<EndpointOptions> {
    new_handle(|place, error| eyas_endpoint_options_new(place, error)).expect("options")
}

/// A function that sets the certificate and its encrypted key.
type Set<O> = for<'a> extern "C" fn(
    Option<&'a mut O>,
    DataPointer<'a>,
    usize,
    DataPointer<'a>,
    usize,
    TextPointer<'a>,
    OutPointer<'a, *mut Failure>,
) -> Code;

fn set<O>(
    function: Set<O>,
    options: &mut O,
    key: &[u8],
    passphrase: Option<&CStr>,
) -> Result<(), CallError> {
    let (chain, sizes) = (CERTIFICATE.into(), (CERTIFICATE.len(), key.len()));
    let passphrase = passphrase.map_or_else(TextPointer::null, TextPointer::from);
    done(|error| function(Some(options), chain, sizes.0, key.into(), sizes.1, passphrase, error))
}

fn set_at_listener(key: &[u8], passphrase: Option<&CStr>) -> Result<Box<ListenOptions>, CallError> {
    let mut options = listen_options(c"tcp");
    let call = eyas_listen_options_set_encrypted_certificate;
    set(call, &mut *options, key, passphrase).map(|()| options)
}

fn set_at_endpoint(key: &[u8], passphrase: Option<&CStr>) -> Result<(), CallError> {
    let call = eyas_endpoint_options_set_encrypted_client_certificate;
    set(call, &mut *endpoint_options(), key, passphrase)
}

#[test]
fn a_server_uses_a_key_with_its_passphrase() {
    for key in KEYS {
        let options = set_at_listener(key, Some(PASSPHRASE)).expect("it is decrypted");
        let listener = listener(&endpoint(), &options);
        let mut trust = endpoint_options();
        let size = CERTIFICATE.len();
        done(|error| {
            eyas_endpoint_options_set_roots(Some(&mut trust), CERTIFICATE.into(), size, error)
        })
        .expect("roots");
        let client = new_handle(|place, error| eyas_endpoint_new(Some(&trust), place, error));
        let to = new_handle(|place, error| {
            eyas_target_new(c"127.0.0.1".into(), port(&listener), place, error)
        });
        let here = connect(&client.expect("an endpoint"), &to.expect("a target"));
        let here = here.expect("a connection over TLS");
        assert_eq!(connections::write(&here, GREETING), Ok(GREETING.len()));
        free([here, accept_greeting(&listener)]);
    }
}

#[test]
fn every_way_to_set_a_key_reports_what_is_wrong_with_it() {
    let pkcs12_cipher = &include_bytes!("keys/pkcs12-cipher.pem")[..];
    let (wrong, right) = (Some(c"wrong"), Some(PASSPHRASE));
    for (key, passphrase, code, said) in [
        (KEYS[0], wrong, EYAS_TLS, "passphrase does not fit"),
        (KEYS[1], wrong, EYAS_TLS, "passphrase does not fit"),
        (KEYS[0], Some(c""), EYAS_TLS, "passphrase does not fit"),
        (KEYS[0], Some(c"\xff"), EYAS_INVALID, "not UTF-8"),
        (KEYS[0], None, EYAS_INVALID, "passphrase"),
        (pkcs12_cipher, right, EYAS_TLS, "openssl pkey"),
        (b"no key", right, EYAS_TLS, "no private key"),
    ] {
        let outcomes =
            [set_at_listener(key, passphrase).map(drop), set_at_endpoint(key, passphrase)];
        for outcome in outcomes {
            let (found, text) = outcome.expect_err(said);
            assert_eq!(found, code, "{text}");
            assert!(text.contains(said), "{text}");
        }
    }
    for key in KEYS {
        set_at_endpoint(key, right).expect("it is decrypted");
        let (chain, sizes) = (CERTIFICATE, (CERTIFICATE.len(), key.len()));
        let (mut here, mut there) = (endpoint_options(), listen_options(c"tcp"));
        let without = [
            done(|error| {
                eyas_endpoint_options_set_client_certificate(
                    Some(&mut here),
                    chain.into(),
                    sizes.0,
                    key.into(),
                    sizes.1,
                    error,
                )
            }),
            done(|error| {
                eyas_listen_options_set_certificate(
                    Some(&mut there),
                    chain.into(),
                    sizes.0,
                    key.into(),
                    sizes.1,
                    error,
                )
            }),
        ];
        for outcome in without {
            let (code, text) = outcome.expect_err("it is encrypted");
            assert!(code == EYAS_TLS && text.contains("its passphrase is needed"), "{text}");
        }
    }
}
