//! Configurations of hosts, and names to ask for in each.

/// The files of `/etc`; `None` for one that is missing.
pub(crate) struct Configuration {
    pub(crate) what: &'static str,
    pub(crate) switch: Option<&'static str>,
    pub(crate) resolv_conf: Option<&'static str>,
    pub(crate) hosts: Option<&'static str>,
    pub(crate) host_conf: Option<&'static str>,
    pub(crate) environment: &'static [(&'static str, &'static str)],
    pub(crate) names: &'static [&'static str],
}

const SERVER: Option<&str> = Some("nameserver 127.0.0.1\n");
const POD: Option<&str> = Some(
    "nameserver 127.0.0.1\n\
     search default.svc.cluster.local svc.cluster.local cluster.local\n\
     options ndots:5\n",
);
pub(crate) const TWO: Option<&str> = Some("nameserver 127.0.0.1\nsearch one.test two.test\n");
const DNS_NAMES: &[&str] =
    &["v4.test", "v6.test", "both.test", "alias.test", "broken.test", "empty.test", "absent.test"];
const HOSTS_NAMES: &[&str] = &["both.test", "v6.test", "h.test", "a", "b", "c"];
const POD_NAMES: &[&str] =
    &["svc", "svc.ns", "svc.ns.svc", "svc.default", "api.example.com", "both.test", "absent.test"];

/// A host with everything usual.
pub(crate) const USUAL: Configuration = Configuration {
    what: "files and DNS",
    switch: Some("passwd: files\nhosts: files dns\n"),
    resolv_conf: SERVER,
    hosts: Some("127.0.0.1 localhost\n"),
    host_conf: Some("multi on\n"),
    environment: &[],
    names: DNS_NAMES,
};

pub(crate) const CONFIGURATIONS: &[Configuration] = &[
    USUAL,
    Configuration { what: "odd names", names: &["un_der.test", "hyphen-.test", "top"], ..USUAL },
    Configuration { what: "no nsswitch.conf", switch: None, ..USUAL },
    Configuration { what: "no line for hosts", switch: Some("passwd: files\n"), ..USUAL },
    Configuration {
        what: "one family in the hosts file",
        hosts: Some("127.0.0.1 both.test\n2001:db8::9 v4.test\n10.9.9.9 v6.test\n"),
        names: &["both.test", "v4.test", "v6.test"],
        ..USUAL
    },
    Configuration {
        what: "blocked names",
        hosts: Some("0.0.0.0 both.test v4.test\n:: v6.test\n"),
        names: &["both.test", "v4.test", "v6.test"],
        ..USUAL
    },
    Configuration {
        what: "a name in several lines",
        hosts: Some(
            "10.0.0.1 h.test\n# 10.0.0.9 h.test\n2001:db8::1 x H.TEST\n10.0.0.2\th.test#y\n",
        ),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration {
        what: "only the first line with a name",
        hosts: Some("10.0.0.1 both.test\n::1 both.test a\n10.0.0.1 a\n"),
        host_conf: None,
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration {
        what: "lines that are none",
        hosts: Some(
            "fe80::1%lo both.test\n10.0.0 v6.test\nh.test 10.0.0.1\n10.0.0.01 a\n\n10.0.0.5\n10.0.0.6 b\r\n 10.0.0.7 c\n",
        ),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration {
        what: "other forms of addresses",
        hosts: Some("::ffff:10.0.0.7 h.test\n2001:DB8:0::1 a\n::1 b\n"),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration { what: "no hosts file", hosts: None, ..USUAL },
    Configuration { what: "no resolv.conf", resolv_conf: None, ..USUAL },
    Configuration {
        what: "no resolv.conf, and a name in the hosts file",
        resolv_conf: None,
        hosts: Some("10.0.0.1 h.test\n"),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration { what: "an empty resolv.conf", resolv_conf: Some(""), ..USUAL },
    Configuration {
        what: "a resolv.conf without servers",
        resolv_conf: Some("search two.test\nnameserver\nnameserver x\n"),
        names: &["m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "a server that refuses before one that answers",
        resolv_conf: Some("nameserver 127.0.0.3\nnameserver 127.0.0.2\noptions timeout:1\n"),
        names: &["both.test", "where.test"],
        ..USUAL
    },
    Configuration {
        what: "comments and forms of addresses",
        resolv_conf: Some("; x\n#y\nnameserver 127.2#z\n nameserver 127.0.0.3\n"),
        names: &["where.test"],
        ..USUAL
    },
    Configuration { what: "a pod", resolv_conf: POD, names: POD_NAMES, ..USUAL },
    Configuration {
        what: "a pod with dots from two on",
        resolv_conf: Some(
            "search default.svc.cluster.local svc.cluster.local\noptions ndots:2\nnameserver 127.0.0.1\n",
        ),
        names: POD_NAMES,
        ..USUAL
    },
    Configuration {
        what: "a search list",
        resolv_conf: TWO,
        names: &["m", "m.", "s", "n", "top", "both.test", "absent.test", "absent.test.", "x"],
        ..USUAL
    },
    Configuration {
        what: "a search list, and a name in the hosts file",
        resolv_conf: TWO,
        hosts: Some("10.0.0.1 m\n10.0.0.2 s.two.test\n"),
        names: &["m", "s", "n"],
        ..USUAL
    },
    Configuration {
        what: "a domain whose server fails",
        resolv_conf: Some(
            "nameserver 127.0.0.1\nsearch servfail.test two.test\noptions timeout:1 attempts:1\n",
        ),
        names: &["f", "m", "x", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "a domain",
        resolv_conf: Some("nameserver 127.0.0.1\ndomain two.test one.test\n"),
        names: &["m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "the last of several lists",
        resolv_conf: Some(
            "search one.test\ndomain x.test\nsearch two.test\nnameserver 127.0.0.1\n",
        ),
        names: &["m", "s"],
        ..USUAL
    },
    Configuration {
        what: "the root in the list",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch . one.test\noptions ndots:3\n"),
        names: &["top", "m", "both.test", "both.test.", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "no dots needed",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch one.test\noptions ndots:0\n"),
        names: &["top", "m", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "names without dots are searched only",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch two.test\noptions no-tld-query\n"),
        names: &["top", "m", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "without AAAA",
        resolv_conf: Some("nameserver 127.0.0.1\noptions no-aaaa\n"),
        names: &["v4.test", "v6.test", "both.test"],
        ..USUAL
    },
    Configuration { what: "files only", switch: Some("hosts: files\n"), ..USUAL },
    Configuration {
        what: "DNS only",
        switch: Some("hosts: dns\n"),
        hosts: Some("10.0.0.1 both.test h.test\n"),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration {
        what: "DNS before files",
        switch: Some("hosts: dns files\n"),
        hosts: Some("10.0.0.1 both.test h.test\n10.0.0.2 v6.test\n10.0.0.3 empty.test\n"),
        names: &["both.test", "h.test", "v6.test", "empty.test", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "files only where DNS is not there",
        switch: Some("hosts: dns [!UNAVAIL=return] files\n"),
        hosts: Some("10.0.0.1 both.test h.test\n"),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration {
        what: "files where DNS is not there",
        switch: Some("hosts: dns [!UNAVAIL=return] files\n"),
        resolv_conf: Some("nameserver 127.0.0.3\noptions timeout:1 attempts:1\n"),
        hosts: Some("10.0.0.1 both.test h.test\n"),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration {
        what: "nothing after files",
        switch: Some("hosts: files [NOTFOUND=return] dns\n"),
        hosts: Some("10.0.0.1 h.test\n"),
        names: HOSTS_NAMES,
        ..USUAL
    },
    Configuration {
        what: "mDNS",
        switch: Some("hosts: files mdns4_minimal [NOTFOUND=return] dns\n"),
        hosts: Some("10.0.0.1 h.local\n"),
        names: &["both.test", "v4.test", "h.local", "x.local", "svc.ns.svc.cluster.local"],
        ..USUAL
    },
    Configuration {
        what: "the host's own name",
        switch: Some("hosts: files myhostname dns\n"),
        names: &["both.test", "_gateway", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "systemd's order",
        switch: Some("hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns\n"),
        hosts: Some("127.0.0.1 both.test\n0.0.0.0 v6.test\n"),
        names: &["both.test", "v4.test", "v6.test", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "a directory service, with a search list",
        switch: Some("hosts: sss files dns\n"),
        resolv_conf: TWO,
        hosts: Some("127.0.0.1 both.test\n"),
        names: &["both.test", "m", "s", "n", "v4.test"],
        ..USUAL
    },
    Configuration {
        what: "results that are merged",
        switch: Some("hosts: files [SUCCESS=merge] dns\n"),
        hosts: Some("10.0.0.1 h.test\n"),
        names: &["h.test", "v4.test"],
        ..USUAL
    },
    Configuration {
        what: "an unknown option",
        resolv_conf: Some("nameserver 127.0.0.1\nsearch one.test two.test\noptions whatever\n"),
        names: &["m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "an unknown keyword",
        resolv_conf: Some("nameserver 127.0.0.1\nsortlist 10.0.0.9\nlookup file bind\n"),
        ..USUAL
    },
    Configuration {
        what: "another list by a variable",
        resolv_conf: TWO,
        environment: &[("LOCALDOMAIN", "two.test one.test")],
        names: &["m", "s", "both.test"],
        ..USUAL
    },
    Configuration {
        what: "no list by a variable",
        resolv_conf: TWO,
        environment: &[("LOCALDOMAIN", "")],
        names: &["m", "s", "both.test", "top"],
        ..USUAL
    },
    Configuration {
        what: "options by a variable",
        resolv_conf: TWO,
        environment: &[("RES_OPTIONS", "ndots:3 timeout:1")],
        names: &["m", "both.test", "absent.test"],
        ..USUAL
    },
    Configuration {
        what: "aliases by a variable",
        resolv_conf: TWO,
        environment: &[("HOSTALIASES", "/etc/elsewhere/none")],
        names: &["m", "both.test"],
        ..USUAL
    },
];
