//! The matrix of ends: one program over every transport and security. What was written arrives,
//! whoever ends first, although the handle is closed without waiting, or only shut down, and freed at
//! once.

use std::{ffi::CStr, thread};

use super::{
    GREETING, PATIENCE, accept_greeting, call_with_error, connect,
    connections::{read, write},
    done, endpoint, free, get_text, get_value, listen_options, listener, new_handle, poll, port,
    target,
};
use crate::{
    code::{EYAS_CLOSED, EYAS_END, EYAS_OK, EYAS_WOULD_BLOCK},
    connection::{
        Connection, eyas_connection_close, eyas_connection_free, eyas_connection_shutdown,
        eyas_connection_write_fd,
    },
    endpoint::{Endpoint, eyas_endpoint_free, eyas_endpoint_new},
    endpoint_options::{
        EndpointOptions, eyas_endpoint_options_new, eyas_endpoint_options_set_roots,
    },
    listen_options::{
        eyas_listen_options_add_alpn, eyas_listen_options_certificate_pem,
        eyas_listen_options_set_self_signed,
    },
    listener::{Listener, eyas_listener_sctp_udp_port},
    target::{
        Target, eyas_target_add_alpn, eyas_target_set_sctp_udp_port, eyas_target_set_security,
    },
};

/// What is listened for, what the client uses, and the security.
const ROWS: [(&CStr, &CStr, &CStr); 6] = [
    (c"tcp", c"tcp", c"none"),
    (c"tcp", c"tcp", c"tls"),
    (c"mptcp,tcp", c"mptcp,tcp", c"tls"),
    (c"quic", c"quic", c"tls"),
    (c"sctp-udp", c"sctp-udp", c"none"),
    (c"sctp-udp", c"sctp-udp", c"tls"),
];

const SIZES: [usize; 2] = [100, 3_000_000];

/// How the writer gets rid of its handle.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// It waits until the connection is closed.
    Waits,
    /// It polls the descriptor until the connection is closed.
    Polls,
    /// It starts to close the connection, and frees the handle.
    Starts,
    /// It shuts the connection down, and frees the handle.
    ShutsDown,
}

struct Scene {
    listener: Box<Listener>,
    client: Box<Endpoint>,
    target: Box<Target>,
}

impl Scene {
    fn new((served, transports, security): (&CStr, &CStr, &CStr)) -> Self {
        let mut options = listen_options(served);
        let mut trust: Box<EndpointOptions> =
            new_handle(|place, error| eyas_endpoint_options_new(place, error)).expect("options");
        if security != c"none" {
            done(|error| {
                eyas_listen_options_set_self_signed(Some(&mut options), c"127.0.0.1".into(), error)
            })
            .expect("a certificate");
            done(|error| eyas_listen_options_add_alpn(Some(&mut options), c"ends".into(), error))
                .expect("a protocol");
            let pem = get_text(|text, error| {
                eyas_listen_options_certificate_pem(Some(&options), text, error)
            })
            .expect("a certificate");
            let pem = pem.as_bytes();
            done(|error| {
                eyas_endpoint_options_set_roots(Some(&mut trust), pem.into(), pem.len(), error)
            })
            .expect("roots");
        }
        let listener = listener(&endpoint(), &options);
        let client = new_handle(|place, error| eyas_endpoint_new(Some(&trust), place, error));
        let mut target = target(port(&listener), transports);
        done(|error| eyas_target_set_security(Some(&mut target), security.into(), error))
            .expect("security");
        if security != c"none" {
            done(|error| eyas_target_add_alpn(Some(&mut target), c"ends".into(), error))
                .expect("a protocol");
        }
        if transports == c"sctp-udp" {
            let udp = get_value(|place, error| {
                eyas_listener_sctp_udp_port(Some(&listener), place, error)
            })
            .expect("a port");
            done(|error| eyas_target_set_sctp_udp_port(Some(&mut target), udp, error))
                .expect("a port");
        }
        Self { listener, client: client.expect("an endpoint"), target }
    }

    /// Returns the writer and the reader.
    fn pair(&self, client_writes: bool) -> (Box<Connection>, Box<Connection>) {
        let here = connect(&self.client, &self.target).expect("a connection");
        assert_eq!(write(&here, GREETING), Ok(GREETING.len()));
        let there = accept_greeting(&self.listener);
        if client_writes { (here, there) } else { (there, here) }
    }
}

fn data(size: usize) -> Vec<u8> {
    (0..size).map(|n| (n * 7 % 251) as u8).collect()
}

fn close(connection: &Connection, timeout: i32) -> i32 {
    call_with_error(|error| eyas_connection_close(Some(connection), timeout, error)).0
}

fn end(connection: Box<Connection>, ending: Ending) {
    match ending {
        Ending::Waits => assert_eq!(close(&connection, PATIENCE), EYAS_OK),
        Ending::Polls => {
            let fd = get_value(|fd, error| eyas_connection_write_fd(Some(&connection), fd, error))
                .expect("a descriptor");
            loop {
                match close(&connection, 0) {
                    EYAS_WOULD_BLOCK => assert!(poll::is_readable(fd, PATIENCE.into())),
                    code => break assert_eq!(code, EYAS_OK),
                }
            }
            assert_eq!(close(&connection, 0), EYAS_CLOSED, "its result was returned");
        }
        Ending::Starts => assert!([EYAS_OK, EYAS_WOULD_BLOCK].contains(&close(&connection, 0))),
        Ending::ShutsDown => {
            done(|error| eyas_connection_shutdown(Some(&connection), PATIENCE, error))
                .expect("shut down");
        }
    }
    eyas_connection_free(Some(connection));
}

fn read_all(connection: &Connection) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match read(connection, 64 * 1024, PATIENCE) {
            Ok(piece) => all.extend(piece),
            Err((EYAS_END, _)) => return all,
            Err(error) => panic!("{error:?} after {} bytes", all.len()),
        }
    }
}

#[test]
fn what_was_written_before_the_end_arrives_over_everything() {
    for row in ROWS {
        let scene = Scene::new(row);
        for size in SIZES {
            for ending in [Ending::Waits, Ending::Polls, Ending::Starts, Ending::ShutsDown] {
                for (client_writes, reader_first) in
                    [(true, true), (true, false), (false, true), (false, false)]
                {
                    let (writer, reader) = scene.pair(client_writes);
                    if reader_first {
                        done(|error| eyas_connection_shutdown(Some(&reader), PATIENCE, error))
                            .expect("shut down");
                    }
                    let writing = thread::spawn(move || {
                        assert_eq!(write(&writer, &data(size)), Ok(size));
                        end(writer, ending);
                    });
                    let read = read_all(&reader);
                    assert!(read == data(size), "{row:?} {ending:?} {size} {}", read.len());
                    writing.join().expect("no panic");
                    free([reader]);
                }
            }
        }
    }
}

/// The endpoint, its last connection and everything else is freed while 3 MB are on their way.
#[test]
fn what_was_written_arrives_after_everything_was_freed() {
    for row in ROWS {
        let scene = Scene::new(row);
        let (writer, reader) = scene.pair(true);
        let Scene { client, .. } = scene;
        let writing = thread::spawn(move || {
            assert_eq!(write(&writer, &data(3_000_000)), Ok(3_000_000));
            end(writer, Ending::Starts);
            eyas_endpoint_free(Some(client));
        });
        assert!(read_all(&reader) == data(3_000_000), "{row:?}");
        writing.join().expect("no panic");
        free([reader]);
    }
}

/// A peer that goes away without having read is an error, not a success.
#[test]
fn closing_fails_if_the_peer_is_gone() {
    let scene = Scene::new((c"quic", c"quic", c"tls"));
    let (writer, reader) = scene.pair(true);
    // More than is accepted without reading.
    let writing = thread::spawn(move || {
        let written = write(&writer, &data(3_000_000));
        let closed = close(&writer, PATIENCE);
        eyas_connection_free(Some(writer));
        written.is_err() || closed != EYAS_OK
    });
    assert!(read(&reader, 1, PATIENCE).is_ok());
    free([reader]);
    assert!(writing.join().expect("no panic"), "neither the write nor the close has failed");
}
