//! ClientHellos on the wire, and the part of them that a cookie covers.

/// The offset of the body of a message: after the headers of record and message.
const BODY: usize = 13 + 12;
/// The offset of the length of the session ID: after version and random.
const SESSION: usize = BODY + 2 + 32;

/// Returns the message sequence number of a ClientHello, if the datagram is one.
pub fn number(datagram: &[u8]) -> Option<u16> {
    let is_hello = datagram.len() > SESSION
        && (datagram[0], datagram[13]) == (22, 1)
        && datagram[3..5] == [0, 0];
    is_hello.then(|| u16::from_be_bytes([datagram[17], datagram[18]]))
}

/// Returns the offset of the length of the DTLS 1.2 cookie.
fn cookie_offset(hello: &[u8]) -> usize {
    SESSION + 1 + usize::from(hello[SESSION])
}

/// Returns the octets of a second ClientHello that must not change: those after the record header, in
/// DTLS 1.2 up to the extensions, in DTLS 1.3 without the padding at the end.
pub fn covered(hello: &[u8]) -> &[u8] {
    let cookie = cookie_offset(hello);
    let end = match usize::from(hello[cookie]) {
        0 => hello.len() - hello.iter().rev().take_while(|octet| **octet == 0).count(),
        length => {
            let suites = cookie + 1 + length;
            let methods = usize::from(u16::from_be_bytes([hello[suites], hello[suites + 1]]));
            let compression = suites + 2 + methods;
            compression + 1 + usize::from(hello[compression])
        }
    };
    &hello[13..end]
}

/// Returns the second ClientHello of a DTLS 1.2 client, with the requested cookie.
pub fn with_cookie(first: &[u8], cookie: &[u8]) -> Vec<u8> {
    let offset = cookie_offset(first);
    let (before, after) = (&first[..offset], &first[offset + 1..]);
    let length = u8::try_from(cookie.len()).expect("short");
    let mut second = [before, &[length], cookie, after].concat();
    let record = u16::try_from(second.len() - 13).expect("a datagram");
    let message = u16::try_from(second.len() - BODY).expect("a datagram");
    second[11..13].copy_from_slice(&record.to_be_bytes());
    second[15..17].copy_from_slice(&message.to_be_bytes());
    second[17..19].copy_from_slice(&[0, 1]);
    second[23..25].copy_from_slice(&message.to_be_bytes());
    second
}

/// Returns the cookie in a HelloVerifyRequest: after the version and its length.
pub fn cookie_in(answer: &[u8]) -> Option<&[u8]> {
    let is_request = answer.get(13) == Some(&3);
    answer.get(BODY + 3..).filter(|_| is_request)
}
