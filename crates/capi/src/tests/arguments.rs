//! Tests of arguments that are NULL or invalid: they return an error.

use std::{mem::MaybeUninit, ptr};

use super::{call_with_error, done, endpoint, new_handle, target};
use crate::{
    association::eyas_association_send,
    code::{EYAS_INVALID, EYAS_OK, EYAS_TLS},
    connection::{eyas_connection_free, eyas_connection_read, eyas_connection_write},
    endpoint::{eyas_endpoint_free, eyas_endpoint_new},
    endpoint_options::{
        EndpointOptions, eyas_endpoint_options_add_local_address, eyas_endpoint_options_free,
        eyas_endpoint_options_new, eyas_endpoint_options_set_dns_server,
        eyas_endpoint_options_set_ech, eyas_endpoint_options_set_encrypted_dns,
        eyas_endpoint_options_set_roots,
    },
    error::{eyas_error_code, eyas_error_free, eyas_error_race_json},
    event::{eyas_event_json, eyas_event_name},
    listen_options::eyas_listen_options_new,
    message::{eyas_message_ppid, eyas_message_size},
    pointer::{DataPointer, OutPointer, TextPointer, eyas_text_free},
    race::eyas_connect,
    target::{
        Target, eyas_target_add_alpn, eyas_target_new, eyas_target_prohibit,
        eyas_target_set_deadline, eyas_target_set_family, eyas_target_set_security,
        eyas_target_set_transports,
    },
};

#[test]
fn null_is_an_error_with_the_name_of_the_argument() {
    let (code, text) = call_with_error(|error| eyas_endpoint_new(None, OutPointer::null(), error));
    assert_eq!((code, text.as_str()), (EYAS_INVALID, "endpoint is NULL"));
    let refused = new_handle(|place, error| eyas_target_new(TextPointer::null(), 1, place, error));
    assert_eq!(refused.err(), Some((EYAS_INVALID, "host is NULL".into())));
    let refused = new_handle(|place, error| eyas_connect(None, None, -1, place, error));
    assert_eq!(refused.err(), Some((EYAS_INVALID, "endpoint is NULL".into())));
    let mut length = MaybeUninit::new(7);
    let mut buffer = [0; 4];
    let (code, _) = call_with_error(|error| {
        eyas_connection_read(
            None,
            buffer[..].as_mut().into(),
            4,
            OutPointer::from_place(&mut length),
            0,
            error,
        )
    });
    // SAFETY: it was set above.
    assert_eq!((code, unsafe { length.assume_init() }), (EYAS_INVALID, 0));
    let (code, text) = call_with_error(|error| {
        eyas_association_send(None, DataPointer::null(), 1, None, 0, error)
    });
    assert_eq!((code, text.as_str()), (EYAS_INVALID, "association is NULL"));
}

#[test]
fn without_an_error_pointer_the_code_is_returned() {
    assert_eq!(eyas_endpoint_new(None, OutPointer::null(), OutPointer::null()), EYAS_INVALID);
    let written = eyas_connection_write(
        None,
        DataPointer::null(),
        1,
        OutPointer::null(),
        0,
        OutPointer::null(),
    );
    assert_eq!(written, EYAS_INVALID);
}

#[test]
fn freeing_and_querying_null_is_allowed() {
    eyas_endpoint_free(None);
    eyas_connection_free(None);
    eyas_error_free(None);
    eyas_text_free(None);
    assert_eq!(eyas_error_code(None), EYAS_OK);
    assert_eq!(eyas_error_race_json(None), ptr::null());
    assert_eq!((eyas_event_name(None), eyas_event_json(None)), (ptr::null(), ptr::null()));
    assert_eq!((eyas_message_size(None), eyas_message_ppid(None)), (0, 0));
}

#[test]
fn invalid_texts_are_refused_with_a_suggestion() {
    let mut target = target(7, c"tcp");
    let mut set = |text: &std::ffi::CStr| {
        call_with_error(|error| eyas_target_set_transports(Some(&mut target), text.into(), error))
    };
    assert_eq!(set(c"quic, sctp-udp").0, EYAS_OK);
    for (text, part) in
        [(c"carrier-pigeon", "there are tcp, mptcp"), (c"tcp,tcp", "twice"), (c"", "there are tcp")]
    {
        let (code, message) = set(text);
        assert_eq!(code, EYAS_INVALID);
        assert!(message.contains(part), "{message}");
    }
    let (code, message) = set(c"\xff");
    assert_eq!((code, message.as_str()), (EYAS_INVALID, "transports is not UTF-8"));
    let refused = new_handle(|place, error| eyas_target_new(c"1.2.3".into(), 1, place, error));
    assert!(refused.is_err_and(|(_, message)| message.contains("write 192.0.2.1")));
    let refused =
        new_handle(|place, error| eyas_listen_options_new(c"localhost".into(), place, error));
    assert!(refused.is_err_and(|(_, message)| message.contains("[::]:4433")));
}

#[test]
fn values_of_a_target_have_bounds() {
    let mut target: Box<Target> = target(7, c"tcp");
    let target = &mut *target;
    let mut refused = |call: &mut dyn FnMut(&mut Target, OutPointer<'_, _>) -> i32| {
        let (code, message) = call_with_error(|error| call(target, error));
        assert_eq!(code, EYAS_INVALID, "{message}");
    };
    refused(&mut |target, error| eyas_target_set_deadline(Some(target), 0, error));
    refused(&mut |target, error| eyas_target_set_deadline(Some(target), u32::MAX, error));
    refused(&mut |target, error| eyas_target_set_family(Some(target), 5, error));
    refused(&mut |target, error| eyas_target_set_security(Some(target), c"dtls".into(), error));
    refused(&mut |target, error| eyas_target_add_alpn(Some(target), c"".into(), error));
}

#[test]
fn a_target_without_transports_is_refused() {
    let (endpoint, mut target) = (endpoint(), target(7, c"tcp"));
    done(|error| eyas_target_prohibit(Some(&mut target), c"tcp".into(), error)).expect("done");
    let refused = super::connect(&endpoint, &target);
    assert!(refused.is_err_and(|(code, _)| code == EYAS_INVALID));
}

#[test]
fn options_of_an_endpoint_are_checked_when_they_are_set() {
    let mut options: Box<EndpointOptions> =
        new_handle(|place, error| eyas_endpoint_options_new(place, error)).expect("options");
    let (code, message) = call_with_error(|error| {
        eyas_endpoint_options_set_dns_server(Some(&mut options), c"192.0.2.53".into(), error)
    });
    assert_eq!(code, EYAS_INVALID);
    assert!(message.contains("192.0.2.53:53"), "{message}");
    let (code, _) = call_with_error(|error| {
        eyas_endpoint_options_add_local_address(Some(&mut options), c"here".into(), error)
    });
    assert_eq!(code, EYAS_INVALID);
    let (code, message) = call_with_error(|error| {
        eyas_endpoint_options_set_ech(Some(&mut options), c"perhaps".into(), error)
    });
    assert_eq!(code, EYAS_INVALID);
    assert!(message.contains("expected auto, off, require"), "{message}");
    done(|error| eyas_endpoint_options_set_ech(Some(&mut options), c"require".into(), error))
        .expect("a policy");
    let (code, message) = call_with_error(|error| {
        let setting = c"perhaps".into();
        eyas_endpoint_options_set_encrypted_dns(Some(&mut options), setting, error)
    });
    assert_eq!(code, EYAS_INVALID);
    assert!(message.contains("expected system, auto"), "{message}");
    done(|error| {
        let setting = c"require".into();
        eyas_endpoint_options_set_encrypted_dns(Some(&mut options), setting, error)
    })
    .expect("a policy");
    let pem = &b"no certificate"[..];
    let (code, _) = call_with_error(|error| {
        eyas_endpoint_options_set_roots(Some(&mut options), pem.into(), pem.len(), error)
    });
    assert_eq!(code, EYAS_TLS);
    eyas_endpoint_options_free(Some(options));
}

#[test]
fn a_size_larger_than_memory_is_refused() {
    let (here, there) = super::pair(&endpoint());
    let (code, message) = call_with_error(|error| {
        let data = (&b"x"[..]).into();
        eyas_connection_write(Some(&here), data, usize::MAX, OutPointer::null(), 0, error)
    });
    assert_eq!(code, EYAS_INVALID, "{message}");
    super::free([here, there]);
}

#[test]
fn connecting_without_waiting_is_refused() {
    let refused = new_handle(|place, error| {
        eyas_connect(Some(&endpoint()), Some(&target(7, c"tcp")), 0, place, error)
    });
    assert!(refused.is_err_and(|(_, message)| message.contains("eyas_race_start")));
}
