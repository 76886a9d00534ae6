//! One row for each rule of RFC 9114 §4.2 to §4.5 and §10.3: fields, and what is wrong with them.

use proptest::prelude::*;

use super::MessageFault as Fault;
use super::*;

type Fields<'a> = Vec<(&'a str, &'a str)>;

fn pairs<'a>(fields: &'a Fields<'_>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone {
    fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

/// The fields of a GET request.
fn get() -> Fields<'static> {
    vec![(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")]
}

/// The fields of a request with others after them.
fn with<'a>(further: &[(&'a str, &'a str)]) -> Fields<'a> {
    [&get(), further].concat()
}

/// The fields of a request with another value of one.
fn changed<'a>(name: &str, value: &'a str) -> Fields<'a> {
    let change = |(other, old)| (other, if other == name { value } else { old });
    get().into_iter().map(change).collect()
}

/// The fields of a request without one.
fn without(name: &str) -> Fields<'static> {
    get().into_iter().filter(|(other, _)| *other != name).collect()
}

fn request(fields: &Fields<'_>) -> Result<Content, Fault> {
    check_request(pairs(fields), RequestOptions::default()).map(|head| head.content)
}

fn extended(fields: &Fields<'_>) -> Result<Content, Fault> {
    let options = RequestOptions { extended_connect: true };
    check_request(pairs(fields), options).map(|head| head.content)
}

fn response(fields: &Fields<'_>) -> Result<Content, Fault> {
    check_response(pairs(fields), RequestMethod::Other).map(|head| head.content)
}

//= rfc9114 §4.3, §4.3.1
//# pseudo-header fields of requests
#[test]
fn pseudo_fields_of_requests_are_known_complete_and_there_once() {
    use PseudoField::*;
    for (fields, expected) in [
        (get(), Ok(Content::Any)),
        (without(":method"), Err(Fault::PseudoFieldMissing(Method))),
        (without(":scheme"), Err(Fault::PseudoFieldMissing(Scheme))),
        (without(":path"), Err(Fault::PseudoFieldMissing(Path))),
        (vec![], Err(Fault::PseudoFieldMissing(Method))),
        (with(&[(":path", "/")]), Err(Fault::PseudoFieldRepeated(Path))),
        (with(&[(":method", "GET")]), Err(Fault::PseudoFieldRepeated(Method))),
        (with(&[(":scheme", "https")]), Err(Fault::PseudoFieldRepeated(Scheme))),
        (with(&[(":authority", "a.test")]), Err(Fault::PseudoFieldRepeated(Authority))),
        (with(&[(":status", "200")]), Err(Fault::PseudoFieldOfOtherKind(Status))),
        (with(&[(":foo", "a")]), Err(Fault::PseudoFieldUnknown)),
        (with(&[(":Path", "/")]), Err(Fault::PseudoFieldUnknown)),
        (with(&[("a", "b"), (":protocol", "c")]), Err(Fault::PseudoFieldAfterFields)),
        (changed(":method", ""), Err(Fault::PseudoFieldInvalid(Method))),
        (changed(":method", "G T"), Err(Fault::PseudoFieldInvalid(Method))),
        (changed(":scheme", "ht/tp"), Err(Fault::PseudoFieldInvalid(Scheme))),
        (changed(":path", "/ HTTP/1.1"), Err(Fault::PseudoFieldInvalid(Path))),
        (changed(":path", "a"), Err(Fault::PseudoFieldInvalid(Path))),
        (changed(":authority", "a\r\n"), Err(Fault::PseudoFieldInvalid(Authority))),
    ] {
        assert_eq!(request(&fields), expected, "{fields:?}");
    }
}

//= rfc9114 §4.3.1
//# `:authority` or Host, equal and not empty; no user information; a path, `*` for OPTIONS alone
#[test]
fn the_target_of_a_request_has_a_path_and_an_authority() {
    let host = |authority: Option<&'static str>, host: &'static str| {
        let mut fields =
            authority.map_or(without(":authority"), |name| changed(":authority", name));
        fields.push(("host", host));
        fields
    };
    let options = |path: &'static str| {
        let mut fields = changed(":path", path);
        fields[0].1 = "OPTIONS";
        fields
    };
    for (fields, expected) in [
        (changed(":path", ""), Err(Fault::PathEmpty)),
        (changed(":path", "*"), Err(Fault::PathAsterisk)),
        (options("*"), Ok(Content::Any)),
        (options("/"), Ok(Content::Any)),
        (without(":authority"), Err(Fault::AuthorityMissing)),
        (changed(":authority", ""), Err(Fault::AuthorityMissing)),
        (changed(":authority", "me@a.test"), Err(Fault::UserInformation)),
        (host(None, "a.test"), Ok(Content::Any)),
        (host(None, ""), Err(Fault::AuthorityMissing)),
        (host(Some("a.test"), "A.test"), Ok(Content::Any)),
        (host(Some("a.test"), "b.test"), Err(Fault::AuthorityDiffersFromHost)),
        (with(&[("host", "a.test"), ("host", "a.test")]), Err(Fault::HostRepeated)),
        // Another scheme has its own rules.
        (vec![(":method", "GET"), (":scheme", "urn"), (":path", "")], Ok(Content::Any)),
    ] {
        assert_eq!(request(&fields), expected, "{fields:?}");
    }
}

//= rfc9114 §4.4
//# CONNECT without `:scheme` and `:path`
#[test]
fn connect_has_an_authority_alone() {
    use PseudoField::*;
    let connect = |further: &[(&'static str, &'static str)]| {
        [&[(":method", "CONNECT"), (":authority", "a.test:443")], further].concat()
    };
    for (fields, expected) in [
        (connect(&[]), Ok(Content::Tunnel)),
        (connect(&[("content-length", "5")]), Ok(Content::Tunnel)),
        (connect(&[(":scheme", "https")]), Err(Fault::PseudoFieldInConnect(Scheme))),
        (connect(&[(":path", "/")]), Err(Fault::PseudoFieldInConnect(Path))),
        (vec![(":method", "CONNECT")], Err(Fault::PseudoFieldMissing(Authority))),
        (vec![(":method", "CONNECT"), (":authority", "")], Err(Fault::AuthorityMissing)),
        (connect(&[("host", "b.test:443")]), Err(Fault::AuthorityDiffersFromHost)),
    ] {
        assert_eq!(request(&fields), expected, "{fields:?}");
    }
}

//= rfc9220 §3
//# extended CONNECT only with the setting, and with a whole target
#[test]
fn extended_connect_needs_the_setting_and_a_whole_target() {
    use PseudoField::*;
    let websocket = |left_out: &str| -> Fields<'static> {
        let mut fields = without(left_out);
        fields[0].1 = "CONNECT";
        fields.push((":protocol", "websocket"));
        fields
    };
    assert_eq!(extended(&websocket("")), Ok(Content::Tunnel));
    assert_eq!(request(&websocket("")), Err(Fault::ProtocolNotAllowed));
    assert_eq!(extended(&with(&[(":protocol", "websocket")])), Err(Fault::ProtocolNotAllowed));
    for (name, field) in [(":scheme", Scheme), (":path", Path), (":authority", Authority)] {
        assert_eq!(extended(&websocket(name)), Err(Fault::PseudoFieldMissing(field)), "{name}");
    }
    let mut fields = websocket("");
    fields[4].1 = "web socket";
    assert_eq!(extended(&fields), Err(Fault::PseudoFieldInvalid(Protocol)));
}

//= rfc9114 §4.3.2, §4.5
//# `:status` alone, and never 101
#[test]
fn responses_have_a_status_alone() {
    use PseudoField::*;
    for (fields, expected) in [
        (vec![(":status", "200")], Ok(Content::Any)),
        (vec![(":status", "200"), ("content-length", "7")], Ok(Content::Length(7))),
        (vec![(":status", "103")], Ok(Content::Interim)),
        (vec![(":status", "204")], Ok(Content::Empty)),
        (vec![(":status", "304"), ("content-length", "7")], Ok(Content::Empty)),
        (vec![(":status", "999")], Ok(Content::Any)),
        (vec![(":status", "101")], Err(Fault::SwitchingProtocols)),
        (vec![(":status", "099")], Err(Fault::StatusInvalid)),
        (vec![(":status", "20")], Err(Fault::StatusInvalid)),
        (vec![(":status", "2000")], Err(Fault::StatusInvalid)),
        (vec![(":status", "+20")], Err(Fault::StatusInvalid)),
        (vec![("a", "b")], Err(Fault::PseudoFieldMissing(Status))),
        (vec![(":status", "200"), (":status", "200")], Err(Fault::PseudoFieldRepeated(Status))),
        (vec![(":status", "200"), (":path", "/")], Err(Fault::PseudoFieldOfOtherKind(Path))),
        (vec![(":status", "200"), (":foo", "/")], Err(Fault::PseudoFieldUnknown)),
        (vec![("a", "b"), (":status", "200")], Err(Fault::PseudoFieldAfterFields)),
    ] {
        assert_eq!(response(&fields), expected, "{fields:?}");
    }
    for (method, status, expected) in [
        (RequestMethod::Head, "200", Content::Empty),
        (RequestMethod::Head, "100", Content::Interim),
        (RequestMethod::Connect, "200", Content::Tunnel),
        (RequestMethod::Connect, "404", Content::Any),
    ] {
        let head = check_response(pairs(&vec![(":status", status)]), method);
        assert_eq!(head.map(|head| head.content), Ok(expected), "{method:?} {status}");
    }
    assert_eq!(RequestMethod::from_name(b"HEAD"), RequestMethod::Head);
    assert_eq!(RequestMethod::from_name(b"head"), RequestMethod::Other);
}

//= rfc9114 §4.2
//# names in lower case; connection-specific fields, TE other than `trailers` and invalid characters
//# (§10.3) are malformed
#[test]
fn fields_have_valid_names_and_values() {
    for (name, value, expected) in [
        ("a", "", Ok(Content::Any)),
        ("a", "b c\td\u{e4}", Ok(Content::Any)),
        ("te", "trailers", Ok(Content::Any)),
        ("x-a.b!#$%&'*+^_`|~1", "b", Ok(Content::Any)),
        ("te", "gzip", Err(Fault::TransferCodingRequested)),
        ("te", "trailers, gzip", Err(Fault::TransferCodingRequested)),
        ("connection", "close", Err(Fault::ConnectionSpecificField)),
        ("keep-alive", "a", Err(Fault::ConnectionSpecificField)),
        ("proxy-connection", "a", Err(Fault::ConnectionSpecificField)),
        ("transfer-encoding", "chunked", Err(Fault::ConnectionSpecificField)),
        ("upgrade", "a", Err(Fault::ConnectionSpecificField)),
        ("A", "b", Err(Fault::NameInUpperCase)),
        ("", "b", Err(Fault::NameInvalid)),
        ("a b", "c", Err(Fault::NameInvalid)),
        ("a:", "c", Err(Fault::NameInvalid)),
        ("\u{e4}", "c", Err(Fault::NameInvalid)),
        ("a\0", "c", Err(Fault::NameInvalid)),
        ("a", "b\rc", Err(Fault::ValueInvalid)),
        ("a", "b\nc", Err(Fault::ValueInvalid)),
        ("a", "b\0c", Err(Fault::ValueInvalid)),
        ("a", "b\u{7f}", Err(Fault::ValueInvalid)),
        ("a", " b", Err(Fault::ValueInvalid)),
        ("a", "b\t", Err(Fault::ValueInvalid)),
    ] {
        assert_eq!(request(&with(&[(name, value)])), expected, "{name:?}: {value:?}");
        let fields = vec![(":status", "200"), (name, value)];
        assert_eq!(response(&fields), expected, "{name:?}: {value:?}");
        let trailers = vec![(name, value)];
        assert_eq!(check_trailers(pairs(&trailers)), expected.map(|_| ()), "{name:?}: {value:?}");
    }
    let pseudo = vec![("a", "b"), (":path", "/")];
    assert_eq!(check_trailers(pairs(&pseudo)), Err(Fault::PseudoFieldInTrailers));
}

#[test]
fn content_length_is_one_number() {
    let invalid = Err(Fault::ContentLengthInvalid);
    for (lengths, expected) in [
        (&["0"][..], Ok(Content::Length(0))),
        (&["42"], Ok(Content::Length(42))),
        (&["42", "42"], Ok(Content::Length(42))),
        (&["42, 42"], Ok(Content::Length(42))),
        (&["042"], Ok(Content::Length(42))),
        (&["42", "43"], invalid),
        (&["42, 43"], invalid),
        (&["42,"], invalid),
        (&[""], invalid),
        (&["+42"], invalid),
        (&["-1"], invalid),
        (&["4 2"], invalid),
        (&["18446744073709551616"], invalid),
    ] {
        let further: Fields<'_> =
            lengths.iter().map(|length| ("content-length", *length)).collect();
        assert_eq!(request(&with(&further)), expected, "{lengths:?}");
    }
}

proptest! {
    /// Whatever the fields are: no panic, and what is accepted has only valid characters.
    #[test]
    fn arbitrary_fields_are_accepted_only_with_valid_characters(
        fields in proptest::collection::vec(
            (proptest::sample::select(vec![":method", ":scheme", ":authority", ":path", ":status",
              ":protocol", "a", "te", "content-length", "host", "A", ""]), any::<Vec<u8>>()),
            0..8,
        ),
    ) {
        let lines = || fields.iter().map(|(name, value)| (name.as_bytes(), &value[..]));
        let options = RequestOptions { extended_connect: true };
        let is_accepted = check_request(lines(), options).is_ok()
            || check_response(lines(), RequestMethod::Other).is_ok()
            || check_trailers(lines()).is_ok();
        if is_accepted {
            prop_assert!(lines().all(|(_, value)| !value.iter().any(|byte| b"\r\n\0".contains(byte))));
        }
    }
}
