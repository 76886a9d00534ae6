//! Tests of connections as byte streams.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::FromRawFd,
    thread,
};

use serde_json::Value;

use super::{
    CallError, PATIENCE, accept_greeting, call_with_error, connect, done, endpoint, free, get_text,
    get_value, listen_options, listener, new_handle, pair, port, target,
};
use crate::{
    code::{
        EYAS_CANCELLED, EYAS_CLOSED, EYAS_END, EYAS_MISUSE, EYAS_OK, EYAS_TIMEOUT, EYAS_UNSUPPORTED,
    },
    connection::{
        Connection, eyas_connection_abort, eyas_connection_close, eyas_connection_info_json,
        eyas_connection_into_association, eyas_connection_into_fd, eyas_connection_race_json,
        eyas_connection_read, eyas_connection_shutdown, eyas_connection_write,
    },
    endpoint::{eyas_endpoint_free, eyas_endpoint_new},
    endpoint_options::{
        EndpointOptions, eyas_endpoint_options_new, eyas_endpoint_options_set_roots,
    },
    listen_options::{eyas_listen_options_certificate_pem, eyas_listen_options_set_self_signed},
    listener::{Listener, eyas_listener_accept, eyas_listener_cancel},
    pointer::OutPointer,
    target::eyas_target_new,
};

pub(super) fn write(connection: &Connection, data: &[u8]) -> Result<usize, CallError> {
    get_value(|written, error| {
        let size = data.len();
        eyas_connection_write(Some(connection), data.into(), size, written, PATIENCE, error)
    })
}

/// Reads up to `max` bytes, waiting up to `timeout` milliseconds.
pub(super) fn read(
    connection: &Connection,
    max: usize,
    timeout: i32,
) -> Result<Vec<u8>, CallError> {
    let mut buffer = vec![0; max];
    let length = get_value(|length, error| {
        eyas_connection_read(
            Some(connection),
            (&mut buffer[..]).into(),
            max,
            length,
            timeout,
            error,
        )
    })?;
    buffer.truncate(length);
    Ok(buffer)
}

pub(super) fn code<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> i32 {
    outcome.expect_err("it fails").0
}

#[test]
fn bytes_go_both_ways_until_each_side_ends() {
    let (here, there) = pair(&endpoint());
    assert_eq!(write(&here, b"hello"), Ok(5));
    assert_eq!(read(&there, 64, PATIENCE), Ok(b"hello".to_vec()));
    done(|error| eyas_connection_shutdown(Some(&here), PATIENCE, error)).expect("shut down");
    assert_eq!(code(read(&there, 64, PATIENCE)), EYAS_END);
    assert_eq!(write(&there, b"bye"), Ok(3));
    assert_eq!(read(&here, 64, PATIENCE), Ok(b"bye".to_vec()));
    done(|error| eyas_connection_close(Some(&there), PATIENCE, error)).expect("closed");
    assert_eq!(code(read(&here, 64, PATIENCE)), EYAS_END);
    free([here, there]);
}

#[test]
fn quic_and_tcp_race_under_tls() {
    let own = endpoint();
    for transport in [c"quic", c"tcp"] {
        let mut options = listen_options(transport);
        done(|error| {
            eyas_listen_options_set_self_signed(Some(&mut options), c"127.0.0.1".into(), error)
        })
        .expect("a certificate");
        let pem = get_text(|text, error| {
            eyas_listen_options_certificate_pem(Some(&options), text, error)
        })
        .expect("a certificate");
        let listener = listener(&own, &options);
        let mut trust: Box<EndpointOptions> =
            new_handle(|place, error| eyas_endpoint_options_new(place, error)).expect("options");
        let pem = pem.as_bytes();
        done(|error| {
            eyas_endpoint_options_set_roots(Some(&mut trust), pem.into(), pem.len(), error)
        })
        .expect("roots");
        let client = new_handle(|place, error| eyas_endpoint_new(Some(&trust), place, error));
        let client = client.expect("an endpoint");
        let (to, port) = (c"127.0.0.1", port(&listener));
        let target = new_handle(|place, error| eyas_target_new(to.into(), port, place, error));
        let here = connect(&client, &target.expect("a target")).expect("a connection");
        assert_eq!(write(&here, b"!hello"), Ok(6));
        let there = accept_greeting(&listener);
        assert_eq!(read(&there, 64, PATIENCE), Ok(b"hello".to_vec()));
        let info = get_text(|text, error| eyas_connection_info_json(Some(&here), text, error));
        let info: Value = serde_json::from_str(&info.expect("facts")).expect("JSON");
        assert_eq!(info["transport"], transport.to_str().expect("UTF-8"));
        assert_eq!(info["security"], "tls");
        let race = get_text(|text, error| eyas_connection_race_json(Some(&here), text, error));
        let race: Value = serde_json::from_str(&race.expect("a race")).expect("JSON");
        assert_eq!(race["winner"]["transport"], info["transport"]);
        assert!(race["plan"]["entries"].as_array().is_some_and(|entries| !entries.is_empty()));
        // The accepting side has not raced.
        let none = get_text(|text, error| eyas_connection_race_json(Some(&there), text, error));
        assert_eq!(code(none), EYAS_UNSUPPORTED);
        done(|error| eyas_connection_close(Some(&there), PATIENCE, error)).expect("closed");
        free([here, there]);
        eyas_endpoint_free(Some(client));
    }
}

#[test]
fn a_timeout_ends_the_wait_but_not_the_connection() {
    let (here, there) = pair(&endpoint());
    assert_eq!(code(read(&there, 64, 1)), EYAS_TIMEOUT);
    assert_eq!(write(&here, b"late"), Ok(4));
    assert_eq!(read(&there, 64, PATIENCE), Ok(b"late".to_vec()));
    free([here, there]);
}

#[test]
fn aborting_ends_a_call_that_waits_in_another_thread() {
    let (here, there) = pair(&endpoint());
    thread::scope(|scope| {
        let reading = scope.spawn(|| code(read(&here, 64, -1)));
        done(|error| eyas_connection_abort(Some(&here), error)).expect("aborted");
        // The thread may start to read only after the abort.
        assert!([EYAS_CANCELLED, EYAS_CLOSED].contains(&reading.join().expect("no panic")));
    });
    assert!([EYAS_CANCELLED, EYAS_CLOSED].contains(&code(write(&here, b"x"))));
    free([here, there]);
}

#[test]
fn two_threads_cannot_read_at_the_same_time() {
    let (here, there) = pair(&endpoint());
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| read(&here, 64, PATIENCE))).collect();
        // One of them is refused at once; the other one reads the data.
        while !readers.iter().any(|reader| reader.is_finished()) {
            thread::yield_now();
        }
        assert_eq!(write(&there, b"x"), Ok(1));
        let outcomes: Vec<_> =
            readers.into_iter().map(|one| one.join().expect("no panic")).collect();
        assert!(outcomes.contains(&Ok(b"x".to_vec())), "{outcomes:?}");
        let refused = outcomes.into_iter().find_map(Result::err).expect("one is refused");
        assert_eq!(refused.0, EYAS_MISUSE, "{}", refused.1);
    });
    free([here, there]);
}

#[test]
fn a_tcp_winner_can_be_converted_to_a_descriptor() {
    let (here, there) = pair(&endpoint());
    let fd = get_value(|fd, error| eyas_connection_into_fd(Some(&here), fd, error)).expect("one");
    // SAFETY: we own the returned descriptor.
    let mut socket = unsafe { TcpStream::from_raw_fd(fd) };
    socket.write_all(b"plain").expect("written");
    assert_eq!(read(&there, 64, PATIENCE), Ok(b"plain".to_vec()));
    assert_eq!(write(&there, b"answer"), Ok(6));
    let mut answer = [0; 6];
    // It blocks, as sockets do.
    socket.read_exact(&mut answer).expect("read");
    assert_eq!(&answer, b"answer");
    assert_eq!(code(read(&here, 64, PATIENCE)), EYAS_MISUSE);
    assert_eq!(
        code(get_value::<i32>(|fd, error| eyas_connection_into_fd(Some(&here), fd, error))),
        EYAS_MISUSE
    );
    free([here, there]);
}

#[test]
fn a_refused_conversion_leaves_the_connection_usable() {
    let (here, there) = pair(&endpoint());
    let refused =
        new_handle(|place, error| eyas_connection_into_association(Some(&here), place, error));
    let (refused, message) = refused.err().expect("TCP carries no messages");
    assert_eq!(refused, EYAS_UNSUPPORTED);
    assert!(message.contains("this is tcp"), "{message}");
    assert_eq!(write(&here, b"still"), Ok(5));
    assert_eq!(read(&there, 64, PATIENCE), Ok(b"still".to_vec()));
    free([here, there]);
}

#[test]
fn an_endpoint_may_be_freed_before_its_connections() {
    let endpoint = endpoint();
    let (here, there) = pair(&endpoint);
    eyas_endpoint_free(Some(endpoint));
    assert_eq!(write(&here, b"on"), Ok(2));
    assert_eq!(read(&there, 64, PATIENCE), Ok(b"on".to_vec()));
    free([here, there]);
}

#[test]
fn accepting_ends_when_the_listener_is_cancelled() {
    let endpoint = endpoint();
    let listener: Box<Listener> = listener(&endpoint, &listen_options(c"tcp"));
    thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            new_handle(|place, error| eyas_listener_accept(Some(&listener), -1, place, error)).err()
        });
        done(|error| eyas_listener_cancel(Some(&listener), error)).expect("cancelled");
        let refused = accepting.join().expect("no panic");
        assert_eq!(refused.map(|(code, _)| code), Some(EYAS_CANCELLED));
    });
}

#[test]
fn a_reset_by_the_peer_is_an_error_and_not_a_signal() {
    let outside = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let to = target(outside.local_addr().expect("an address").port(), c"tcp");
    let here = connect(&endpoint(), &to).expect("a connection");
    assert_eq!(write(&here, b"unread"), Ok(6));
    // Closing with unread data causes a reset. Connections that have lost the race send nothing.
    while outside.accept().expect("a peer").0.read(&mut [0]).expect("read") == 0 {}
    let mut outcome = (EYAS_OK, String::new());
    while outcome.0 == EYAS_OK {
        outcome = call_with_error(|error| {
            let (data, null) = ((&b"x"[..]).into(), OutPointer::null());
            eyas_connection_write(Some(&here), data, 1, null, PATIENCE, error)
        });
    }
    assert_eq!(outcome.0, EYAS_CLOSED, "{}", outcome.1);
    free([here]);
}
