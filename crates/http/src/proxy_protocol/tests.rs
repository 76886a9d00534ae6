use proptest::prelude::*;

use super::*;

fn addresses(source: &str, destination: &str) -> Addresses {
    let parse = |text: &str| text.parse().expect("an address");
    Addresses { source: parse(source), destination: parse(destination) }
}

fn complete(bytes: &[u8]) -> (usize, Option<Addresses>) {
    match parse(bytes) {
        Ok(Header::Complete { length, addresses, .. }) => (length, addresses),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_of_version_1_names_the_client() {
    for (line, expected) in [
        (
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n",
            Some(addresses("192.0.2.1:56324", "198.51.100.1:443")),
        ),
        (
            "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n",
            Some(addresses("[2001:db8::1]:1", "[2001:db8::2]:65535")),
        ),
        ("PROXY UNKNOWN\r\n", None),
        ("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", None),
    ] {
        let bytes = [line.as_bytes(), b"GET / HTTP/1.1\r\n"].concat();
        assert_eq!(complete(&bytes), (line.len(), expected), "{line}");
    }
}

#[test]
fn other_beginnings_are_refused_at_once() {
    for bytes in [
        &b"G"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
        b"PROXY\t",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n",
        b"PROXY TCP4 192.0.2.256 198.51.100.1 56324 443\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 99999 443\r\n",
        b"PROXY UDP4 192.0.2.1 198.51.100.1 56324 443\r\n",
        b"PROXY UNKNOWN\rx\r\n",
        // A command, a version and a length of version 2 that there are not.
        b"\r\n\r\n\0\r\nQUIT\n\x22\x11\0\0",
        b"\r\n\r\n\0\r\nQUIT\n\x11\x11\0\0",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x04abcd",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff",
    ] {
        assert!(parse(bytes).is_err(), "{:?}: {:?}", String::from_utf8_lossy(bytes), parse(bytes));
    }
    let long = format!("PROXY UNKNOWN {}", "x".repeat(200));
    assert!(parse(long.as_bytes()).is_err());
}

#[test]
fn connections_of_the_balancer_itself_have_no_addresses() {
    assert_eq!(complete(&header(None).expect("fits")), (16, None));
    // PROXY with unspecified addresses, and with those of Unix sockets.
    assert_eq!(complete(b"\r\n\r\n\0\r\nQUIT\n\x21\x00\0\0"), (16, None));
    let unix = [&b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8"[..], &[0; 216]].concat();
    assert_eq!(complete(&unix), (16 + 216, None));
}

#[test]
fn a_balancer_tells_whether_the_client_uses_tls() {
    let client = addresses("192.0.2.1:56324", "198.51.100.1:443");
    // PP2_TYPE_SSL with the result of the verification, and in it PP2_SUBTYPE_SSL_VERSION.
    let ssl = |bits: u8| [&[0x20, 0, 12, bits, 0, 0, 0, 0][..], b"\x21\x00\x04TLS1"].concat();
    let other = [4, 0, 1, 0];
    for (values, expected) in [
        (ssl(1), true),
        (ssl(7), true),
        (ssl(0), false),
        ([&other[..], &ssl(1)].concat(), true),
        (other.to_vec(), false),
        (vec![], false),
        // Without a value, and longer than the header.
        (vec![0x20, 0, 0], false),
        (vec![0x20, 0, 9, 1], false),
    ] {
        let bytes = with_values(client, &values);
        let header = parse(&bytes).expect("a header");
        let length = bytes.len();
        let complete = Header::Complete { length, addresses: Some(client), is_encrypted: expected };
        assert_eq!(header, complete, "{values:?}");
    }
}

fn any_address() -> impl Strategy<Value = SocketAddr> {
    (any::<std::net::IpAddr>(), any::<u16>())
        .prop_map(|(ip, port)| SocketAddr::new(ip.to_canonical(), port))
}

fn any_addresses() -> impl Strategy<Value = Addresses> {
    (any_address(), any_address())
        .prop_map(|(source, destination)| Addresses { source, destination })
}

/// A header with further values, as balancers add them.
fn with_values(client: Addresses, values: &[u8]) -> Vec<u8> {
    let mut bytes = header(Some(client)).expect("fits");
    let length = u16::from_be_bytes([bytes[14], bytes[15]]) as usize + values.len();
    bytes[14..16].copy_from_slice(&u16::try_from(length).expect("short").to_be_bytes());
    bytes.extend(values);
    bytes
}

fn line(client: Addresses) -> Option<Vec<u8>> {
    let Addresses { source, destination } = client;
    let family = match (source.is_ipv4(), destination.is_ipv4()) {
        (true, true) => "TCP4",
        (false, false) => "TCP6",
        _ => return None,
    };
    let (from, to) = (source.ip(), destination.ip());
    let line = format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port());
    Some(line.into_bytes())
}

proptest! {
    #[test]
    fn what_is_written_is_read(client in any_addresses(), rest in any::<Vec<u8>>()) {
        for header in [header(Some(client)), line(client)].into_iter().flatten() {
            let bytes = [&header[..], &rest].concat();
            prop_assert_eq!(complete(&bytes), (header.len(), Some(client)));
        }
    }

    /// Whoever reads as many bytes as are said to be missing reads the header and not more.
    #[test]
    fn a_reader_stops_at_the_end_of_the_header(
        client in any_addresses(),
        values in proptest::collection::vec(any::<u8>(), 0..300),
        rest in any::<Vec<u8>>(),
    ) {
        for header in [Some(with_values(client, &values)), line(client)].into_iter().flatten() {
            let bytes = [&header[..], &rest].concat();
            let mut read = 0;
            let length = loop {
                match parse(&bytes[..read]) {
                    Ok(Header::Incomplete(missing)) => {
                        prop_assert!(missing > 0);
                        read += missing;
                        prop_assert!(read <= header.len());
                    }
                    Ok(Header::Complete { length, .. }) => break length,
                    Err(error) => panic!("{error}"),
                }
            };
            prop_assert_eq!((read, length), (header.len(), header.len()));
        }
    }

    //= hostile http
    //# arbitrary and endless headers of the PROXY protocol
    //= bound: `MAX_LENGTH` within `handshake_time`
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in any::<Vec<u8>>(), begin in 0_usize..3) {
        let begin: &[u8] = [&b""[..], &PROXY[..], &SIGNATURE[..]][begin];
        let bytes = [begin, &bytes].concat();
        match parse(&bytes) {
            Ok(Header::Complete { length, .. }) => prop_assert!(length <= bytes.len()),
            Ok(Header::Incomplete(missing)) => {
                prop_assert!(missing > 0 && bytes.len() + missing <= MAX_LENGTH);
            }
            Err(_) => {}
        }
    }
}
