//! What a command's page says about exit status, environment and files.

use clap_mangen::roff::{Roff, bold, roman};

use crate::failure::FailureKind;

/// A variable or file, what it does, and the commands that use it; none are all.
struct UsedByCommands {
    name: &'static str,
    text: &'static str,
    by: &'static [&'static str],
}

/// The commands that ask DNS.
const NAMES: &[&str] = &["get", "race", "pipe", "plan", "perf", "load", "proxy", "tunnel", "serve"];

const ENVIRONMENT: [UsedByCommands; 15] = [
    UsedByCommands {
        name: "EYAS_MEMORY",
        text: "Where to remember what works, unless --memory says: a file, or none.",
        by: &["get", "race", "pipe", "plan", "memory", "proxy", "tunnel"],
    },
    UsedByCommands {
        name: "EYAS_PASS",
        text: "The passphrase of an encrypted private key, unless --pass or --pass-file says.",
        by: &["get", "race", "pipe", "perf", "load", "serve", "proxy", "tunnel"],
    },
    UsedByCommands {
        name: "EYAS_PROXY_VIA",
        text: "The proxy that the proxy connects through, unless --via says.",
        by: &["proxy"],
    },
    UsedByCommands {
        name: "EYAS_NETEM",
        text: "Set for the command that runs behind the bad network, for netem show and change there.",
        by: &["netem"],
    },
    UsedByCommands {
        name: "http_proxy, https_proxy, all_proxy, no_proxy",
        text: "The proxies for requests over TCP and for tunnels (https_proxy), and the hosts that need none. All but http_proxy may \
               be in capital letters.",
        by: &["get", "tunnel"],
    },
    UsedByCommands {
        name: "XDG_STATE_HOME",
        text: "The directory of the memory file; ~/.local/state without it.",
        by: &["get", "race", "pipe", "plan", "memory", "proxy", "tunnel"],
    },
    UsedByCommands {
        name: "XDG_CONFIG_HOME",
        text: "The directory of the keys of tunnels; ~/.config without it.",
        by: &["tunnel"],
    },
    UsedByCommands {
        name: "XDG_RUNTIME_DIR",
        text: "The directory of the sockets for status.",
        by: &["tunnel", "sctp"],
    },
    UsedByCommands {
        name: "LOCALDOMAIN, RES_OPTIONS, RESOLV_HOST_CONF, RESOLV_MULTI",
        text: "Change how names are resolved, as for other programs: resolv.conf(5), host.conf(5).",
        by: NAMES,
    },
    UsedByCommands {
        name: "HOSTALIASES",
        text: "If it is set, the host's own resolver is asked: hostname(7).",
        by: NAMES,
    },
    UsedByCommands {
        name: "SSL_CERT_FILE, SSL_CERT_DIR",
        text: "The certificates to trust, instead of those of the system.",
        by: &["get", "race", "pipe", "perf", "load", "proxy", "serve", "tunnel"],
    },
    UsedByCommands { name: "NO_COLOR", text: "If it is not empty, there are no colours.", by: &[] },
    UsedByCommands {
        name: "COLUMNS",
        text: "The width of the terminal, if it does not tell.",
        by: &[],
    },
    UsedByCommands {
        name: "TERM",
        text: "With dumb, there are no colours and no moving lines.",
        by: &[],
    },
    UsedByCommands {
        name: "LC_ALL, LC_CTYPE, LANG",
        text: "Unless the first that is set names UTF-8, output is ASCII.",
        by: &[],
    },
];

const FILES: [UsedByCommands; 9] = [
    UsedByCommands {
        name: "~/.local/state/eyas/memory.sqlite",
        text: "What was learnt about networks and peers.",
        by: &["get", "race", "pipe", "plan", "memory", "proxy", "tunnel"],
    },
    UsedByCommands {
        name: "~/.config/eyas/tunnel/key.pem",
        text: "This user's key for tunnels.",
        by: &["tunnel"],
    },
    UsedByCommands {
        name: "~/.config/eyas/tunnel/host.pem",
        text: "The key of the tunnel server that this user runs.",
        by: &["tunnel"],
    },
    UsedByCommands {
        name: "~/.config/eyas/tunnel/known_hosts",
        text: "The keys of servers that were seen before.",
        by: &["tunnel"],
    },
    UsedByCommands {
        name: "~/.config/eyas/tunnel/authorized_keys",
        text: "The keys that a tunnel server accepts, and what each may do.",
        by: &["tunnel"],
    },
    UsedByCommands {
        name: "/etc/resolv.conf, /etc/hosts, /etc/nsswitch.conf, /etc/gai.conf",
        text: "How names are resolved, and addresses sorted.",
        by: NAMES,
    },
    UsedByCommands {
        name: "/run/eyas-sctp, $XDG_RUNTIME_DIR/eyas-sctp",
        text: "The socket of the shared SCTP stack, for root and for other users.",
        by: &["sctp"],
    },
    UsedByCommands {
        name: "eyas-lab/NAME",
        text: "The runs of an experiment, their results, and report.html.",
        by: &["lab"],
    },
    UsedByCommands {
        name: "/dev/net/tun",
        text: "For network interfaces.",
        by: &["proxy", "tunnel"],
    },
];

/// Adds the sections of the page with this name, such as `eyas-lab-run`.
pub(super) fn add(roff: &mut Roff, page: &str) {
    let command = page.strip_prefix("eyas-").map(|rest| rest.split('-').next().unwrap_or(rest));
    roff.control("SH", ["EXIT STATUS"]);
    entry(roff, "0", "Success.");
    for kind in FailureKind::ALL {
        entry(roff, &kind.exit_code().to_string(), kind.meaning());
    }
    for (section, used) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("FILES", &FILES[..])] {
        let mut here = used
            .iter()
            .filter(|used| {
                command.is_none_or(|command| used.by.is_empty() || used.by.contains(&command))
            })
            .peekable();
        if here.peek().is_some() {
            roff.control("SH", [section]);
        }
        here.for_each(|used| entry(roff, used.name, used.text));
    }
}

fn entry(roff: &mut Roff, name: &str, text: &str) {
    roff.control("TP", []).text([bold(name)]).text([roman(text)]);
}
