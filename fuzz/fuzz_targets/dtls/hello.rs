//! ClientHellos on the wire, as clients say them, and what of them a cookie vouches for.

/// Where the body of a message begins: behind the headers of record and message.
const BODY: usize = 13 + 12;
/// Where the length of the session's name stands: behind version and random.
const SESSION: usize = BODY + 2 + 32;

/// The number of a ClientHello among the messages of its client, if the datagram is one.
pub fn number(datagram: &[u8]) -> Option<u16> {
    let is_hello = datagram.len() > SESSION
        && (datagram[0], datagram[13]) == (22, 1)
        && datagram[3..5] == [0, 0];
    is_hello.then(|| u16::from_be_bytes([datagram[17], datagram[18]]))
}

/// Where the length of the cookie of DTLS 1.2 stands.
fn cookie(hello: &[u8]) -> usize {
    SESSION + 1 + usize::from(hello[SESSION])
}

/// The octets of a second ClientHello that must be as they were: those behind the header of the
/// record, in DTLS 1.2 up to the extensions, in DTLS 1.3 without the padding at the end.
pub fn vouched(hello: &[u8]) -> &[u8] {
    let cookie = cookie(hello);
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

/// What a client of DTLS 1.2 says when it is asked for a cookie.
pub fn with_cookie(first: &[u8], cookie_is: &[u8]) -> Vec<u8> {
    let place = cookie(first);
    let (before, after) = (&first[..place], &first[place + 1..]);
    let length = u8::try_from(cookie_is.len()).expect("short");
    let mut second = [before, &[length], cookie_is, after].concat();
    let record = u16::try_from(second.len() - 13).expect("a datagram");
    let message = u16::try_from(second.len() - BODY).expect("a datagram");
    second[11..13].copy_from_slice(&record.to_be_bytes());
    second[15..17].copy_from_slice(&message.to_be_bytes());
    second[17..19].copy_from_slice(&[0, 1]);
    second[23..25].copy_from_slice(&message.to_be_bytes());
    second
}

/// The cookie in a HelloVerifyRequest: behind the version and its length.
pub fn asked_for(answer: &[u8]) -> Option<&[u8]> {
    let is_request = answer.get(13) == Some(&3);
    answer.get(BODY + 3..).filter(|_| is_request)
}
