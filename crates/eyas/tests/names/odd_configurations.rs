//! Files as people and programs write them, and names that are not quite usual.

use crate::configurations::{Configuration, TWO, USUAL};

/// As long as a label may be (RFC 1035 §2.3.4), and one more.
const LABEL_63: &str = "l23456789012345678901234567890123456789012345678901234567890123.test";
const LABEL_64: &str = "l234567890123456789012345678901234567890123456789012345678901234.test";
const HOSTS: Option<&str> =
    Some("10.0.0.1 h.test both.test\n10.0.0.3 empty.test\n10.0.0.4 f.servfail.test\n");
const FALLBACK: &[&str] = &["both.test", "h.test", "empty.test", "f.servfail.test", "absent.test"];

pub(crate) const ODD_CONFIGURATIONS: &[Configuration] = &[
    Configuration {
        what: "limits of names",
        names: &[
            LABEL_63,
            LABEL_64,
            "_sip._tcp.test",
            "BOTH.Test",
            "xn--bcher-kva.test",
            "a..test",
            "both.test.",
            "123.test",
        ],
        ..USUAL
    },
    Configuration { what: "an IPv4-mapped address in DNS", names: &["mapped.test"], ..USUAL },
    Configuration {
        what: "lines that end in CR LF",
        switch: Some("passwd: files\r\nhosts: files dns\r\n"),
        resolv_conf: Some("nameserver 127.0.0.1\r\noptions ndots:2\r\n"),
        hosts: Some("10.0.0.1 h.test a\r\n\r\n# 10.0.0.2 b\r\n::1 b\r\n"),
        host_conf: Some("multi on\r\n"),
        names: &["h.test", "a", "b", "both.test", "top"],
        ..USUAL
    },
    Configuration {
        what: "a search list that ends in CR LF",
        resolv_conf: Some("nameserver 127.0.0.1\r\nsearch one.test two.test\r\n"),
        names: &["m", "s", "n", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "a domain that ends in CR LF",
        resolv_conf: Some("nameserver 127.0.0.1\r\ndomain two.test\r\n"),
        names: &["m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "tabs",
        switch: Some("hosts:\t\tfiles\t\tdns\t\n"),
        resolv_conf: Some(
            "nameserver\t\t127.0.0.1\nsearch\ttwo.test\t one.test\noptions\tndots:1\n",
        ),
        hosts: Some("\t10.0.0.1\t\th.test\t\ta\t# b\n"),
        names: &["h.test", "a", "b", "m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "no newline at the end",
        switch: Some("hosts: files dns"),
        resolv_conf: Some("search two.test\nnameserver 127.0.0.1"),
        hosts: Some("10.0.0.1 h.test"),
        names: &["h.test", "m", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "comments behind settings",
        switch: Some("hosts: files dns # sss\n"),
        resolv_conf: Some(
            "nameserver 127.0.0.1 # first\nsearch one.test # two.test\noptions ndots:2 # timeout:1\n",
        ),
        hosts: Some("10.0.0.1#x h.test\n10.0.0.2 a#b c\n"),
        names: &["h.test", "a", "b", "c", "m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "forms of addresses in the hosts file",
        hosts: Some(
            "10.1 a\n0x0a.0.0.1 a\n010.0.0.1 a\n10.0.0.1/24 a\n::10.0.0.1 b\n1::2::3 b\n[::1] c\n::ffff:10.0.0.9 c\n::ffff:a00:8 h.test\n",
        ),
        names: &["a", "b", "c", "h.test"],
        ..USUAL
    },
    Configuration {
        what: "the same address twice",
        hosts: Some("10.0.0.1 a a b\n10.0.0.1 a\n::1 b a\n::1 b\n"),
        names: &["a", "b"],
        ..USUAL
    },
    Configuration {
        what: "a NUL in the hosts file",
        hosts: Some("10.0.0.1 a\0b c\n10.0.0.2 h.test\n"),
        names: &["a", "b", "c", "h.test"],
        ..USUAL
    },
    Configuration {
        what: "localhost",
        hosts: Some("127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 box.test box\n"),
        names: &["localhost", "LOCALHOST", "ip6-localhost", "box", "box.test"],
        ..USUAL
    },
    Configuration {
        what: "localhost of one family",
        hosts: Some("127.0.0.1 localhost\n"),
        names: &["localhost"],
        ..USUAL
    },
    Configuration {
        what: "the last of several lines for hosts",
        switch: Some("hosts: dns\nhosts: files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "a blank before the colon",
        switch: Some("hosts : files dns\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "a name in other case",
        switch: Some("Hosts: files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "sources that do not exist",
        switch: Some("hosts: nosuch files nosuch2 dns\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "an end where DNS has nothing",
        switch: Some("hosts: dns [NOTFOUND=return] files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "an end where DNS fails for now",
        switch: Some("hosts: dns [TRYAGAIN=return] files\n"),
        resolv_conf: Some("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "files only where DNS fails",
        switch: Some("hosts: dns [!UNAVAIL=return] files\n"),
        resolv_conf: Some("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "an end where DNS fails",
        switch: Some("hosts: dns [UNAVAIL=return] files\n"),
        resolv_conf: Some("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "an end where DNS is not there",
        switch: Some("hosts: dns [UNAVAIL=return] files\n"),
        resolv_conf: Some("nameserver 127.0.0.3\noptions timeout:1 attempts:1\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "an end where no server has a route",
        switch: Some("hosts: dns [UNAVAIL=return] files\n"),
        resolv_conf: Some("nameserver 203.0.113.9\noptions timeout:1 attempts:1\n"),
        hosts: HOSTS,
        names: &["both.test", "h.test"],
        ..USUAL
    },
    Configuration {
        what: "several actions, in lower case",
        switch: Some("hosts: dns [notfound=Continue unavail=continue tryagain=RETURN] files\n"),
        resolv_conf: Some("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "blanks in actions",
        switch: Some("hosts: dns [ NOTFOUND=return ] files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "blanks around the equals sign",
        switch: Some("hosts: dns [NOTFOUND = return] files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "an action that is not closed",
        switch: Some("hosts: dns [NOTFOUND=return files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "an action without blanks",
        switch: Some("hosts: dns[NOTFOUND=return]files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "a negated action",
        switch: Some("hosts: dns [!SUCCESS=return] files\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "all but one",
        switch: Some("hosts: files [!NOTFOUND=return] dns\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "a success that goes on",
        switch: Some("hosts: files [SUCCESS=continue] dns\n"),
        hosts: HOSTS,
        names: FALLBACK,
        ..USUAL
    },
    Configuration {
        what: "more servers than count",
        resolv_conf: Some(
            "nameserver 127.0.0.3\nnameserver 127.0.0.4\nnameserver 127.0.0.5\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
        ),
        names: &["both.test"],
        ..USUAL
    },
    Configuration {
        what: "servers that are none among those that count",
        resolv_conf: Some(
            "nameserver x\nnameserver 1.2.3.4.5\nnameserver [127.0.0.2]\nnameserver 127.0.0.1:53\nnameserver 127.0.0.1%lo\nnameserver 127.0.0.2 x\n",
        ),
        names: &["where.test", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "a server that is mapped",
        resolv_conf: Some("nameserver ::ffff:127.0.0.2\n"),
        names: &["where.test", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "a server without an address",
        resolv_conf: Some("nameserver 0.0.0.0\n"),
        names: &["both.test"],
        ..USUAL
    },
    Configuration {
        what: "negative numbers",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch one.test two.test\noptions ndots:-1\n"),
        names: &["m", "both.test", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "numbers that are none",
        resolv_conf: Some(
            "nameserver 127.0.0.1\nsearch one.test two.test\noptions ndots:x timeout:\n",
        ),
        names: &["m", "top", "both.test", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "an option with a blank before its value",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch one.test two.test\noptions ndots: 3\n"),
        names: &["m", "top", "both.test", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "options beyond their names",
        resolv_conf: Some(
            "nameserver 127.0.0.1\nsearch one.test\noptions rotatex no-aaaax edns0:1 ndots:2x\n",
        ),
        names: &["m", "v6.test", "both.test", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "more domains than there used to be",
        resolv_conf: Some(
            "nameserver 127.0.0.1\nsearch a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 \
             c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1 d2 d3 d4 d5 d6 d7 d8 d9 two.test\n",
        ),
        names: &["m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "domains with dots at their ends",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch .one.test two.test. ..x\n"),
        names: &["m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "an empty list",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch one.test\nsearch \n"),
        names: &["m", "top", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "every line by a variable",
        hosts: Some("10.0.0.1 a\n::1 a\n10.0.0.2 b\n10.0.0.3 b\n"),
        host_conf: None,
        environment: &[("RESOLV_MULTI", "on")],
        names: &["a", "b"],
        ..USUAL
    },
    Configuration {
        what: "not every line by a variable",
        hosts: Some("10.0.0.1 a\n::1 a\n10.0.0.2 b\n10.0.0.3 b\n"),
        environment: &[("RESOLV_MULTI", "off")],
        names: &["a", "b"],
        ..USUAL
    },
    Configuration {
        what: "another host.conf by a variable",
        hosts: Some("10.0.0.1 a\n::1 a\n10.0.0.2 b\n10.0.0.3 b\n"),
        environment: &[("RESOLV_HOST_CONF", "/etc/elsewhere/none")],
        names: &["a", "b"],
        ..USUAL
    },
    Configuration {
        what: "words of host.conf",
        hosts: Some("10.0.0.1 a\n::1 a\n10.0.0.2 b\n10.0.0.3 b\n"),
        host_conf: Some("order hosts,bind\nMulti\tON # yes\nreorder on\ntrim .test\n"),
        names: &["a", "b"],
        ..USUAL
    },
    Configuration {
        what: "host.conf without a value",
        hosts: Some("10.0.0.1 a\n::1 a\n10.0.0.2 b\n10.0.0.3 b\n"),
        host_conf: Some("multi\nmulti yes\nmulti on,off\n"),
        names: &["a", "b"],
        ..USUAL
    },
    Configuration {
        what: "options by a variable that are unknown",
        resolv_conf: TWO,
        environment: &[("RES_OPTIONS", "ndots:0 whatever")],
        names: &["m", "top", "both.test"],
        ..USUAL
    },
];
