//! Tests of SCTP with messages.

use std::{mem::MaybeUninit, thread};

use serde_json::Value;

use super::{
    PATIENCE, accept, connect, connections::code, done, endpoint, free, get_text, get_value,
    listen_options, listener, new_handle, port, target,
};
use crate::{
    association::{
        Association, eyas_association_abort, eyas_association_event, eyas_association_queue,
        eyas_association_receive, eyas_association_send, eyas_association_set_primary,
        eyas_association_shutdown, eyas_association_status_json,
    },
    code::{EYAS_CLOSED, EYAS_END, EYAS_INVALID, EYAS_MISUSE},
    connection::eyas_connection_into_association,
    endpoint::{Endpoint, eyas_endpoint_wait_for_connections},
    event::eyas_event_name,
    listener::eyas_listener_sctp_udp_port,
    message::{
        Message, eyas_message_begins, eyas_message_data, eyas_message_ends,
        eyas_message_is_unordered, eyas_message_ppid, eyas_message_size, eyas_message_stream,
    },
    pointer::{OutPointer, TextPointer},
    send_options::{
        SendOptions, eyas_send_options_new, eyas_send_options_set_ppid,
        eyas_send_options_set_stream, eyas_send_options_set_unordered,
    },
    target::eyas_target_set_sctp_udp_port,
};

/// Returns both ends of an association over UDP.
fn pair(endpoint: &Endpoint) -> (Box<Association>, Box<Association>) {
    let listener = listener(endpoint, &listen_options(c"sctp-udp"));
    let udp = get_value(|port, error| eyas_listener_sctp_udp_port(Some(&listener), port, error));
    let mut target = target(port(&listener), c"sctp-udp");
    let udp = udp.expect("a port");
    done(|error| eyas_target_set_sctp_udp_port(Some(&mut target), udp, error)).expect("set");
    let ends = [connect(endpoint, &target).expect("a connection"), accept(&listener)];
    let [here, there] = ends.each_ref().map(|end| {
        new_handle(|place, error| eyas_connection_into_association(Some(end), place, error))
            .expect("an association")
    });
    free(ends);
    (here, there)
}

fn send(association: &Association, data: &[u8], options: Option<&SendOptions>) -> i32 {
    let sent = done(|error| {
        let size = data.len();
        eyas_association_send(Some(association), data.into(), size, options, PATIENCE, error)
    });
    sent.map_or_else(|(code, _)| code, |()| 0)
}

fn receive(association: &Association) -> Result<Box<Message>, super::CallError> {
    new_handle(|place, error| eyas_association_receive(Some(association), PATIENCE, place, error))
}

fn text(message: &Message) -> Vec<u8> {
    let (mut data, mut size) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    done(|error| {
        eyas_message_data(
            Some(message),
            OutPointer::from_place(&mut data),
            OutPointer::from_place(&mut size),
            error,
        )
    })
    .expect("a message");
    // SAFETY: the call has set both, to bytes that are valid as long as the message.
    let bytes =
        unsafe { std::slice::from_raw_parts(data.assume_init().cast::<u8>(), size.assume_init()) };
    assert_eq!(bytes.len(), eyas_message_size(Some(message)));
    bytes.to_vec()
}

#[test]
fn messages_keep_their_stream_identifier_and_order() {
    let (here, there) = pair(&endpoint());
    let mut options: Box<SendOptions> =
        new_handle(|place, error| eyas_send_options_new(place, error)).expect("options");
    done(|error| eyas_send_options_set_stream(Some(&mut options), 3, error)).expect("set");
    done(|error| eyas_send_options_set_ppid(Some(&mut options), 51, error)).expect("set");
    done(|error| eyas_send_options_set_unordered(Some(&mut options), true, error)).expect("set");
    assert_eq!(send(&here, b"first", Some(&options)), 0);
    let message = receive(&there).expect("a message");
    assert_eq!(text(&message), b"first");
    assert_eq!(eyas_message_stream(Some(&message)), 3);
    assert_eq!(eyas_message_ppid(Some(&message)), 51);
    assert!(eyas_message_is_unordered(Some(&message)));
    assert!(eyas_message_begins(Some(&message)) && eyas_message_ends(Some(&message)));
    // Without options it is stream 0, which carries messages like any other.
    assert_eq!(send(&there, b"second", None), 0);
    let message = receive(&here).expect("a message");
    assert_eq!((text(&message), eyas_message_stream(Some(&message))), (b"second".to_vec(), 0));
}

#[test]
fn an_association_reports_events_and_shuts_down_gracefully() {
    let endpoint = endpoint();
    let (here, there) = pair(&endpoint);
    let event =
        new_handle(|place, error| eyas_association_event(Some(&here), PATIENCE, place, error));
    assert!(event.is_ok_and(|event| !eyas_event_name(Some(&event)).is_null()));
    let status = get_text(|text, error| eyas_association_status_json(Some(&here), text, error));
    let status: Value = serde_json::from_str(&status.expect("a status")).expect("JSON");
    assert_eq!(status["state"], "established");
    assert_eq!(status["paths"][0]["remote"], "127.0.0.1");
    assert!(send(&here, b"", None) == EYAS_INVALID, "SCTP has no empty messages");
    let path = done(|error| eyas_association_set_primary(Some(&here), 999, error));
    assert_eq!(code(path), EYAS_INVALID);
    done(|error| eyas_association_shutdown(Some(&here), PATIENCE, error)).expect("shut down");
    assert_eq!(code(receive(&there).map(|_| ())), EYAS_END);
    assert_eq!(send(&here, b"late", None), EYAS_CLOSED);
    drop((here, there));
    done(|error| eyas_endpoint_wait_for_connections(Some(&endpoint), PATIENCE, error))
        .expect("all have ended");
}

/// Returns what a stream has in the send buffer, not yet sent.
fn unsent(association: &Association, stream: u16) -> Result<usize, super::CallError> {
    get_value(|unsent, error| {
        eyas_association_queue(Some(association), stream, unsent, OutPointer::null(), error)
    })
}

#[test]
fn the_send_buffer_is_told_by_stream() {
    let (here, there) = pair(&endpoint());
    let mut options: Box<SendOptions> =
        new_handle(|place, error| eyas_send_options_new(place, error)).expect("options");
    done(|error| eyas_send_options_set_stream(Some(&mut options), 3, error)).expect("set");
    assert_eq!(unsent(&here, 3).expect("a number"), 0);
    // Nobody reads, so that the peer's window and the buffer fill.
    let data = [7; 60_000];
    let try_send = || {
        done(|error| {
            let size = data.len();
            eyas_association_send(Some(&here), data[..].into(), size, Some(&options), 0, error)
        })
    };
    while try_send().is_ok() {}
    assert!(unsent(&here, 3).expect("a number") > 0);
    assert_eq!(unsent(&here, 4).expect("a number"), 0);
    done(|error| eyas_association_abort(Some(&here), TextPointer::null(), error)).expect("aborted");
    // The association ends in the background.
    while unsent(&here, 3).is_ok() {
        thread::yield_now();
    }
    assert_eq!(code(unsent(&here, 3)), EYAS_CLOSED);
    drop(there);
}

#[test]
fn the_peer_receives_the_reason_of_an_abort() {
    let (here, there) = pair(&endpoint());
    let reason = TextPointer::from(c"enough");
    done(|error| eyas_association_abort(Some(&here), reason, error)).expect("aborted");
    let (code, message) = receive(&there).err().expect("it was lost");
    assert_eq!(code, EYAS_CLOSED);
    assert!(message.contains("enough"), "{message}");
}

#[test]
fn an_association_keeps_the_info_of_its_connection() {
    let endpoint = endpoint();
    let listener = listener(&endpoint, &listen_options(c"sctp-udp"));
    let udp = get_value(|port, error| eyas_listener_sctp_udp_port(Some(&listener), port, error));
    let mut target = target(port(&listener), c"sctp-udp");
    done(|error| eyas_target_set_sctp_udp_port(Some(&mut target), udp.expect("a port"), error))
        .expect("set");
    let connection = connect(&endpoint, &target).expect("a connection");
    let first = new_handle(|place, error| {
        eyas_connection_into_association(Some(&connection), place, error)
    });
    assert!(first.is_ok());
    let second = new_handle(|place, error| {
        eyas_connection_into_association(Some(&connection), place, error)
    });
    assert_eq!(second.err().map(|(code, _)| code), Some(EYAS_MISUSE));
    free([connection]);
}
