//! What systemd says of the name servers: whether systemd-resolved asks them over TLS (resolved.conf(5)), and the names of
//! their encrypted resolvers, which an administrator has configured or the network has advertised (DNR, RFC 9463, by
//! systemd-networkd).

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use super::way::EncryptionMode;

/// Where resolv.conf(5) points to if systemd-resolved manages it.
const RESOLVED: &str = "run/systemd/resolve";
/// Where the configuration may be, from the most important place to the least (resolved.conf(5)).
const CONFIGURATIONS: [&str; 4] =
    ["etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd"];
/// The state of links, as systemd-networkd keeps it.
const LINKS: &str = "run/systemd/netif/links";
/// The stub resolvers of systemd-resolved, which ask others (systemd-resolved.service(8)).
const STUBS: [&str; 2] = ["127.0.0.53", "127.0.0.54"];
/// The maximum number of servers that are read, and of octets of a file.
const MAX_SERVERS: usize = 64;
const MAX_OCTETS: u64 = 64 * 1024;

/// What systemd says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SystemSetting {
    pub(super) mode: EncryptionMode,
    pub(super) servers: BTreeMap<IpAddr, KnownServer>,
}

/// What the system knows of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KnownServer {
    /// It is a resolver on this host that encrypts all of its own queries.
    EncryptingStub,
    /// It speaks DNS over TLS at this port, with a certificate for this name, or for its address if there is no name.
    /// A link may have a mode of its own for its servers.
    OverTls { name: Option<String>, port: Option<u16>, mode: Option<EncryptionMode> },
}

/// Reads what this host says.
pub(super) fn read() -> SystemSetting {
    if cfg!(target_os = "linux") { read_below(Path::new("/")) } else { SystemSetting::default() }
}

fn read_below(root: &Path) -> SystemSetting {
    let mut setting = SystemSetting::default();
    let is_managed = fs::canonicalize(root.join("etc/resolv.conf")).is_ok_and(|file| {
        // Below another root only in tests.
        fs::canonicalize(root.join(RESOLVED)).is_ok_and(|resolved| file.starts_with(resolved))
    });
    if !is_managed {
        return setting;
    }
    for file in configuration_files(root) {
        setting.apply(&contents(&file));
    }
    let links = fs::read_dir(root.join(LINKS)).into_iter().flatten().flatten();
    let mut links: Vec<PathBuf> = links.map(|link| link.path()).take(MAX_SERVERS).collect();
    links.sort();
    for link in links {
        setting.apply_link(&contents(&link));
    }
    let of_links = setting.servers.values().all(|server| {
        !matches!(server, KnownServer::OverTls { mode: Some(mode), .. } if *mode != EncryptionMode::Required)
    });
    if setting.mode == EncryptionMode::Required && of_links {
        let stubs = STUBS.iter().filter_map(|stub| stub.parse().ok());
        setting.servers.extend(stubs.map(|stub| (stub, KnownServer::EncryptingStub)));
    }
    setting
}

/// Returns the files of the configuration, of which later ones override earlier ones.
fn configuration_files(root: &Path) -> Vec<PathBuf> {
    let main = CONFIGURATIONS.map(|place| root.join(place).join("resolved.conf"));
    let mut files: Vec<PathBuf> = main.into_iter().find(|file| file.exists()).into_iter().collect();
    // A file hides those of the same name in less important places.
    let mut dropped_in = BTreeMap::new();
    for place in CONFIGURATIONS.iter().rev() {
        let directory = fs::read_dir(root.join(place).join("resolved.conf.d"));
        for file in directory.into_iter().flatten().flatten().map(|file| file.path()) {
            if file.extension().is_some_and(|extension| extension == "conf") {
                dropped_in.insert(file.file_name().map(ToOwned::to_owned), file);
            }
        }
    }
    files.extend(dropped_in.into_values());
    files
}

/// Returns the contents of a file, or nothing if it cannot be read: what it says only adds to what others say.
fn contents(file: &Path) -> String {
    use std::io::Read as _;

    let mut octets = Vec::new();
    if let Ok(file) = fs::File::open(file) {
        // What was read before an error is as much as there is.
        let _ = file.take(MAX_OCTETS).read_to_end(&mut octets);
    }
    String::from_utf8_lossy(&octets).into_owned()
}

impl SystemSetting {
    /// Applies a file of the configuration.
    fn apply(&mut self, contents: &str) {
        for (key, value) in assignments(contents) {
            match key {
                "DNSOverTLS" => self.mode = mode(value),
                "DNS" | "FallbackDNS" => self.add(value, None),
                _ => {}
            }
        }
    }

    /// Applies the state of a link.
    fn apply_link(&mut self, contents: &str) {
        let own = assignments(contents).find(|(key, _)| *key == "DNS_OVER_TLS");
        let own = own.map(|(_, value)| mode(value));
        for (_, servers) in assignments(contents).filter(|(key, _)| *key == "DNS") {
            self.add(servers, own);
        }
    }

    fn add(&mut self, servers: &str, mode: Option<EncryptionMode>) {
        for (ip, server) in servers.split_ascii_whitespace().filter_map(|text| server(text, mode)) {
            let is_known = self.servers.contains_key(&ip);
            // A name is worth more than none.
            if server.has_name() || !is_known {
                if !is_known && self.servers.len() >= MAX_SERVERS {
                    return;
                }
                self.servers.insert(ip, server);
            }
        }
    }
}

/// Returns the keys and values of a file's lines.
fn assignments(contents: &str) -> impl Iterator<Item = (&str, &str)> {
    contents.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.trim(), v.trim()))
}

fn mode(value: &str) -> EncryptionMode {
    match value {
        "opportunistic" => EncryptionMode::Auto,
        "1" | "yes" | "y" | "true" | "t" | "on" => EncryptionMode::Required,
        _ => EncryptionMode::Off,
    }
}

impl KnownServer {
    const fn has_name(&self) -> bool {
        matches!(self, Self::OverTls { name: Some(_), .. })
    }
}

/// Reads a server: `ADDRESS[:PORT][%INTERFACE][#NAME]`.
fn server(text: &str, mode: Option<EncryptionMode>) -> Option<(IpAddr, KnownServer)> {
    let (place, name) = match text.split_once('#') {
        Some((place, name)) => (place, Some(name.trim_end_matches('.').to_ascii_lowercase())),
        None => (text, None),
    };
    let place = place.split_once('%').map_or(place, |(place, _)| place);
    let (ip, port) = match place.parse::<SocketAddr>() {
        Ok(address) => (address.ip(), Some(address.port())),
        Err(_) => (place.trim_matches(['[', ']']).parse().ok()?, None),
    };
    let name = name.filter(|name| !name.is_empty());
    Some((ip, KnownServer::OverTls { name, port, mode }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A host whose resolv.conf is that of systemd-resolved, with these files.
    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, contents: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, contents).unwrap();
        };
        write("run/systemd/resolve/stub-resolv.conf", "nameserver 127.0.0.53\n");
        for (path, contents) in files {
            write(path, contents);
        }
        root
    }

    #[cfg(unix)]
    fn manage(root: &Path) {
        fs::create_dir_all(root.join("etc")).unwrap();
        let stub = root.join("run/systemd/resolve/stub-resolv.conf");
        std::os::unix::fs::symlink(stub, root.join("etc/resolv.conf")).unwrap();
    }

    fn named(name: &str, port: Option<u16>) -> KnownServer {
        KnownServer::OverTls { name: Some(name.to_owned()), port, mode: None }
    }

    #[cfg(unix)]
    #[test]
    fn what_the_administrator_and_the_network_say_is_read() {
        let root = host(&[
            (
                "etc/systemd/resolved.conf",
                "[Resolve]\n#DNS=9.9.9.9\nDNS=1.1.1.1#one.example 8.8.8.8\nDNSOverTLS=no\n",
            ),
            ("usr/lib/systemd/resolved.conf", "DNSOverTLS=yes\n"),
            ("usr/lib/systemd/resolved.conf.d/a.conf", "DNSOverTLS=yes\n"),
            ("etc/systemd/resolved.conf.d/a.conf", "DNSOverTLS = opportunistic\n"),
            (
                "run/systemd/netif/links/2",
                "DNS=192.0.2.1:8853#Dnr.Example. [2001:db8::1]:853#dnr.example fe80::1%2\n",
            ),
        ]);
        assert_eq!(read_below(root.path()), SystemSetting::default(), "nobody says that it counts");
        manage(root.path());
        let setting = read_below(root.path());
        assert_eq!(setting.mode, EncryptionMode::Auto);
        let of = |ip: &str| setting.servers.get(&ip.parse::<IpAddr>().unwrap()).cloned();
        assert_eq!(of("1.1.1.1"), Some(named("one.example", None)));
        assert_eq!(
            of("8.8.8.8"),
            Some(KnownServer::OverTls { name: None, port: None, mode: None })
        );
        assert_eq!(of("192.0.2.1"), Some(named("dnr.example", Some(8853))));
        assert_eq!(of("2001:db8::1"), Some(named("dnr.example", Some(853))));
        assert!(of("fe80::1").is_some() && of("9.9.9.9").is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_stub_that_encrypts_is_known() {
        let stub: IpAddr = STUBS[0].parse().unwrap();
        for (mode, is_stub) in [("yes", true), ("opportunistic", false), ("no", false)] {
            let file = format!("[Resolve]\nDNSOverTLS={mode}\n");
            let root = host(&[("etc/systemd/resolved.conf", &file)]);
            manage(root.path());
            let setting = read_below(root.path());
            let found = setting.servers.get(&stub);
            assert_eq!(found == Some(&KnownServer::EncryptingStub), is_stub, "{mode}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_decides_about_its_own_servers() {
        let root = host(&[
            ("etc/systemd/resolved.conf", "DNS=1.1.1.1#one.example\nDNSOverTLS=yes\n"),
            ("run/systemd/netif/links/2", "DNS=192.0.2.1\nDNS_OVER_TLS=no\n"),
        ]);
        manage(root.path());
        let setting = read_below(root.path());
        let of = |ip: &str| setting.servers.get(&ip.parse::<IpAddr>().unwrap()).cloned();
        let off = KnownServer::OverTls { name: None, port: None, mode: Some(EncryptionMode::Off) };
        assert_eq!((setting.mode, of("192.0.2.1")), (EncryptionMode::Required, Some(off)));
        assert_eq!(of("1.1.1.1"), Some(named("one.example", None)));
        assert_eq!(of(STUBS[0]), None, "it asks the server of the link in the clear");
    }

    proptest! {
        #[test]
        fn whatever_a_file_says_it_is_bounded(
            contents in "(DNS=[0-9a-f.:#%\\[\\] ]{0,200}\n|DNSOverTLS=\\PC{0,9}\n|\\PC{0,40}\n){0,40}"
        ) {
            let mut setting = SystemSetting::default();
            setting.apply(&contents);
            setting.apply_link(&contents);
            prop_assert!(setting.servers.len() <= MAX_SERVERS);
        }
    }
}
