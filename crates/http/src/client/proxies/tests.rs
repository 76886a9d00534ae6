//! Tables of proxy URLs, exceptions and variables, each beside what curl does.

use super::*;

/// Returns the proxy's name and credentials.
fn read(text: &str) -> Result<(String, Option<String>), String> {
    let address = Proxy::all(text, "").for_origin(false, "a.test", 80);
    let address = address.map_err(|error| error.to_string())?.expect("a proxy");
    let authorization = address.authorization.as_ref().map(|value| {
        use base64::{Engine as _, prelude::BASE64_STANDARD};
        let encoded = value.to_str().expect("ASCII").trim_start_matches("Basic ");
        String::from_utf8(BASE64_STANDARD.decode(encoded).expect("base64")).expect("text")
    });
    Ok((address.name(), authorization))
}

#[test]
fn proxy_urls_are_taken_as_curl_takes_them() {
    for (text, name, credentials) in [
        ("http://p.test:3128", "http://p.test:3128", None),
        ("p.test:3128", "http://p.test:3128", None),
        ("p.test", "http://p.test:80", None),
        ("HTTP://P.test:3128/", "http://p.test:3128", None),
        ("http://p.test:3128/path?x#y", "http://p.test:3128", None),
        ("http://p.test:", "http://p.test:80", None),
        ("https://p.test", "https://p.test:443", None),
        ("socks5h://p.test", "socks5://p.test:1080", None),
        ("socks5://[::1]:1", "socks5://[::1]:1", None),
        ("http://bücher.test:1", "http://xn--bcher-kva.test:1", None),
        ("http://ada:word@p.test:1", "http://p.test:1", Some("ada:word")),
        ("ada:word@p.test:1", "http://p.test:1", Some("ada:word")),
        (r"http://DOMAIN\ada:word@p.test:1", "http://p.test:1", Some(r"DOMAIN\ada:word")),
        (r"DOMAIN\ada:word@p.test:1", "http://p.test:1", Some(r"DOMAIN\ada:word")),
        ("http://DOMAIN%5Cada:w@p.test:1", "http://p.test:1", Some(r"DOMAIN\ada:w")),
        ("http://ada@p.test:1", "http://p.test:1", Some("ada:")),
        ("http://:word@p.test:1", "http://p.test:1", Some(":word")),
        ("http://@p.test:1", "http://p.test:1", Some(":")),
        ("http://ada:a:b@p.test:1", "http://p.test:1", Some("ada:a:b")),
        ("http://a%64a:p%40%23@p.test:1", "http://p.test:1", Some("ada:p@#")),
        ("http://us%zz:w@p.test:1", "http://p.test:1", Some("us%zz:w")),
        ("http://usér:wörd@p.test:1", "http://p.test:1", Some("usér:wörd")),
        ("http://p.test.:1", "http://p.test.:1", None),
        ("http://[fe80::1%25lo]:1", "http://[fe80::1%1]:1", None),
        ("http://ada:w%25@[fe80::1%lo]", "http://[fe80::1%1]:80", Some("ada:w%")),
        ("socks5://[fe80::1%1]", "socks5://[fe80::1%1]:1080", None),
        ("[FE80::1%251]:3128", "http://[fe80::1%1]:3128", None),
    ] {
        let expected = (name.to_owned(), credentials.map(str::to_owned));
        assert_eq!(read(text).as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn a_proxy_url_that_cannot_be_used_is_an_error() {
    for (text, word) in [
        (" ", "blank"),
        ("http://[fe80::1%25nosuch0]:1", "no interface nosuch0"),
        ("http://[2001:db8::1%lo]:1", "only a link-local address"),
        ("\t", "blank"),
        (" http://p.test:1", "percent-encoded"),
        ("http://p.test:1 ", "percent-encoded"),
        ("http://p.test:1\n", "percent-encoded"),
        ("http://ada:sec ret@p.test:1", "percent-encoded"),
        ("http://a#da:secret@p.test:1", "%23"),
        ("http://ada:sec#ret@p.test:1", "%23"),
        ("http://ada:sec/ret@p.test:1", "%2F"),
        ("http://ada:sec?ret@p.test:1", "%3F"),
        ("http://ada:sec@ret@p.test:1", "%40"),
        ("ada:secret://x@p.test:1", "percent-encoded"),
        ("foo://p.test:1", "foo"),
        ("ftp://p.test", "ftp"),
        ("socks4://p.test:1", "socks4"),
        ("socks4a://p.test:1", "socks4a"),
        ("socks://p.test:1", "socks"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://ada:secret@:1", "no host"),
        (":3128", "no host"),
        ("http://p.test:99999", "port"),
        ("http://p.test:0", "port"),
        ("http://p.test:-1", "port"),
        ("http://p.test:+1", "port"),
        ("http://p.test:abc", "port"),
        ("http://p.test:1:2", "port"),
        ("http:/p.test:1", "http://HOST"),
        ("http:p.test:1", "port"),
        ("p.test:", "http://HOST"),
        ("http://[::1:3128", "IPv6"),
        ("http://[::1]x", "IPv6"),
        ("http://[zz]:1", "host"),
        ("http://p<q.test:1", "host"),
        ("socks5://a%ff:secret@p.test:1", "UTF-8"),
        ("http://a%3Ab:secret@p.test:1", "colon"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.contains(word), "{text}: {error}");
        assert!(!error.contains("sec") && !error.contains("ret@"), "{text}: {error}");
        assert!(Proxy::all(text, "").check().is_err(), "{text}");
        assert!(!format!("{:?}", Proxy::all(text, "")).contains("secret"), "{text}");
    }
    assert!(Proxy::all("", "").for_origin(true, "a.test", 1).expect("no proxy").is_none());
}

#[test]
fn exceptions_are_those_of_curl() {
    // The host, the exceptions, and whether the connection is direct.
    for (host, no_proxy, direct) in [
        ("www.a.test", "a.test", true),
        ("www.a.test", ".a.test", true),
        ("www.a.test", "www.a.test", true),
        ("www.a.test", "ww.a.test", false),
        ("www.a.test", "w.a.test", false),
        ("xa.test", "a.test", false),
        ("www.a.test", "test", true),
        ("www.a.test", "tes", false),
        ("www.a.test", "*", true),
        ("www.a.test", "b.test,a.test", true),
        ("www.a.test", "b.test a.test", true),
        ("www.a.test", "b.test, a.test", true),
        ("www.a.test", "b.test\ta.test", true),
        ("www.a.test", " b.test ,, a.test ", true),
        ("www.a.test", "A.TEST", true),
        ("WWW.A.test", "a.test", true),
        ("www.a.test", "a.test.", true),
        ("www.a.test.", "a.test", true),
        ("www.a.test", "..a.test", false),
        ("www.a.test", "a.test;b", false),
        ("www.a.test", "", false),
        ("xn--bcher-kva.test", "bücher.test", true),
        ("10.1.2.3", "10.0.0.0/8", true),
        ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.3/32", true),
        ("10.1.2.3", "10.1.0.0/17", true),
        ("10.1.2.3", "11.0.0.0/8", false),
        ("10.1.2.3", "10.1.2.3/33", false),
        ("10.1.2.3", "10", false),
        ("10.1.2.3", ".3", false),
        ("10.1.2.3", "3", false),
        ("10.1.2.3", "10.1.2.4 10.1.2.3", true),
        ("[fd00::1]", "fd00::1", true),
        ("[fd00::1]", "FD00::1", true),
        ("[fd00::1]", "fd00:0:0::1", true),
        ("[fd00::1]", "[fd00::1]", true),
        ("[fd00::1]", "fd00::/8", true),
        ("[fd00::1]", "[fd00::]/8", true),
        ("[fd00::1]", "fe00::/8", false),
        ("[fd00::1]", "1", false),
        // Unlike curl, which has no use for these:
        ("www.a.test", "b.test,*", true),
        ("www.a.test", "*.a.test", true),
        ("www.a.test", "a.test:81", true),
        ("www.a.test", "a.test:82", false),
        ("10.1.2.3", "10.1.2.3:81", true),
        ("10.1.2.3", "10.1.2.3:82", false),
        ("[fd00::1]", "[fd00::1]:81", true),
        ("[fd00::1]", "[fd00::1]:82", false),
        ("10.1.2.3", "0.0.0.0/0", true),
    ] {
        let proxy = Proxy::all("http://p.test:1", no_proxy);
        for https in [false, true] {
            let chosen = proxy.for_origin(https, host, 81).expect("a valid proxy");
            assert_eq!(chosen.is_none(), direct, "{host} with {no_proxy:?}");
        }
    }
}

#[test]
fn variables_are_those_of_curl() {
    const A: &str = "http://a.test:1";
    const B: &str = "http://b.test:2";
    // The variables, and the proxies for http and https.
    type Case =
        (&'static [(&'static str, &'static str)], Option<&'static str>, Option<&'static str>);
    let cases: [Case; 14] = [
        (&[], None, None),
        (&[("http_proxy", A)], Some(A), None),
        (&[("HTTP_PROXY", A)], None, None),
        (&[("https_proxy", A)], None, Some(A)),
        (&[("HTTPS_PROXY", A)], None, Some(A)),
        (&[("https_proxy", B), ("HTTPS_PROXY", A)], None, Some(B)),
        (&[("https_proxy", ""), ("HTTPS_PROXY", A)], None, Some(A)),
        (&[("all_proxy", A)], Some(A), Some(A)),
        (&[("ALL_PROXY", A)], Some(A), Some(A)),
        (&[("all_proxy", B), ("ALL_PROXY", A)], Some(B), Some(B)),
        (&[("http_proxy", B), ("all_proxy", A)], Some(B), Some(A)),
        (&[("http_proxy", ""), ("all_proxy", A)], Some(A), Some(A)),
        (&[("all_proxy", A), ("no_proxy", "x"), ("NO_PROXY", "*")], Some(A), Some(A)),
        (&[("all_proxy", A), ("no_proxy", ""), ("NO_PROXY", "*")], None, None),
    ];
    for (variables, http, https) in cases {
        let proxy = Proxy::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            Some((name, found.map(|(_, text)| (*text).to_owned()).ok_or(VarError::NotPresent)))
        });
        for (is_https, expected) in [(false, http), (true, https)] {
            let chosen = proxy.for_origin(is_https, "x.test", 80).expect("valid");
            let name = chosen.map(|address| address.name());
            assert_eq!(name.as_deref(), expected, "{variables:?}");
        }
    }
}

#[test]
fn a_variable_that_cannot_be_used_is_an_error_unless_an_exception_applies() {
    let proxy = |text: Result<&str, VarError>| {
        Proxy::from_variables(|name| match name {
            "https_proxy" => Some((name, text.clone().map(str::to_owned))),
            "no_proxy" => Some((name, Ok("in.test".to_owned()))),
            _ => None,
        })
    };
    for text in [Ok("foo://x"), Ok(" "), Err(VarError::NotUnicode("\u{e9}".into()))] {
        let proxy = proxy(text);
        let error = proxy.for_origin(true, "a.test", 443).err().expect("an error").to_string();
        assert!(error.contains("https_proxy"), "{error}");
        assert!(proxy.for_origin(true, "x.in.test", 443).expect("an exception").is_none());
        assert!(proxy.for_origin(false, "a.test", 80).expect("no proxy").is_none());
    }
}

#[test]
fn a_url_for_other_clients_has_everything_that_they_need() {
    for (text, expected) in [
        ("", None),
        ("proxy.test", Some("http://proxy.test:80")),
        ("http://ada:p%40ss@proxy.test:3128/x?y", Some("http://ada:p%40ss@proxy.test:3128")),
        ("https://ada@[2001:db8::1]", Some("https://ada@[2001:db8::1]:443")),
        ("socks5h://proxy.test", Some("socks5://proxy.test:1080")),
    ] {
        let proxy = Proxy::all(text, "direct.test, 192.0.2.0/24");
        let url = |host: &str| proxy.url_for(host, 4433).expect(text);
        assert_eq!(url("gate.test").as_deref(), expected, "{text:?}");
        assert_eq!(url("[2001:db8::7]").as_deref(), expected, "{text:?}");
        assert_eq!((url("in.direct.test"), url("192.0.2.1")), (None, None), "{text:?}");
    }
    let unusable = Proxy::all("ftp://ada:secret@proxy.test", "direct.test");
    let error = unusable.url_for("gate.test", 4433).expect_err("unusable").to_string();
    assert!(error.contains("ftp") && !error.contains("secret"), "{error}");
    assert_eq!(unusable.url_for("direct.test", 4433).expect("an exception"), None);
}
