//! Which sources answer for a name, in which order (nsswitch.conf(5)).
//!
//! The model is how Go decides between its own resolver and libc's (`hostLookupOrder` in
//! `src/net/conf.go`): only what is understood whole is done here.

use eyas_race::dns::DnsFailure;

/// Where it is.
pub(super) const PATH: &str = "/etc/nsswitch.conf";

/// A list of names beyond `.local` that the mDNS module answers for.
pub(super) const MDNS_ALLOW_PATH: &str = "/etc/mdns.allow";

/// The sources of host names, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameSwitch(Vec<ListedSource>);

/// A source, and what follows its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedSource {
    name: String,
    /// After which results the next source is tried; `None` if that is not understood.
    continues: Option<SourceContinuation>,
}

/// After which results the next source is tried. After a success none is, and neither files nor DNS
/// ask for another try (TRYAGAIN) with servers that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceContinuation {
    pub(super) if_not_found: bool,
    pub(super) if_unavailable: bool,
}

impl Default for SourceContinuation {
    fn default() -> Self {
        Self { if_not_found: true, if_unavailable: true }
    }
}

impl SourceContinuation {
    /// Returns whether the next source is tried after this failure of DNS. To glibc a server that
    /// fails is as good as none.
    pub(super) const fn continues_after(&self, failure: &DnsFailure) -> bool {
        match failure {
            DnsFailure::NoData | DnsFailure::NoSuchName => self.if_not_found,
            _ => self.if_unavailable,
        }
    }
}

/// A source that is asked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceStep {
    Files(SourceContinuation),
    Dns(SourceContinuation),
}

/// Who answers for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceOrder {
    /// These sources, one after the other.
    Own(Vec<SourceStep>),
    /// The hosts file if the name stands there and it comes first, else the host's own resolver,
    /// because of this source.
    HostResolver { files_first: bool, because: String },
}

/// What decides about a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameSituation<'a> {
    /// The name, in lower case and without a trailing dot.
    pub(super) name: &'a str,
    pub(super) host_name: &'a str,
    /// Whether there is a list of names for mDNS.
    pub(super) has_mdns_allow: bool,
}

impl Default for NameSwitch {
    /// Returns the default of glibc since 2.35, for a host without the file or without its line.
    fn default() -> Self {
        let listed = |name: &str| ListedSource {
            name: name.to_owned(),
            continues: Some(SourceContinuation::default()),
        };
        Self(vec![listed("files"), listed("dns")])
    }
}

impl NameSwitch {
    /// Reads the file's contents: the last line for `hosts` counts.
    pub(super) fn parse(contents: &[u8]) -> Self {
        let text = String::from_utf8_lossy(contents);
        let line = text.lines().rev().find_map(|line| {
            let line = line.split('#').next().unwrap_or_default();
            let (database, sources) = line.split_once(':')?;
            (database.trim() == "hosts").then_some(sources)
        });
        line.map_or_else(Self::default, |sources| Self(sources_of(sources)))
    }

    /// Returns whether the hosts file is among the sources.
    pub(super) fn has_files(&self) -> bool {
        self.0.iter().any(|source| source.name == "files")
    }

    /// Returns whether a source asks DNS.
    pub(super) fn has_dns(&self) -> bool {
        self.0.iter().any(|source| matches!(source.name.as_str(), "dns" | "resolve"))
    }

    /// Returns whether a source takes the name for one of this host.
    pub(super) fn is_of_this_host(&self, name: &str, host_name: &str) -> bool {
        self.0.iter().any(|source| source.name == "myhostname") && is_of_this_host(name, host_name)
    }

    /// Returns whether names are looked for by multicast DNS.
    pub(super) fn has_mdns(&self) -> bool {
        self.0.iter().any(|source| source.name.starts_with("mdns"))
    }

    /// Decides who answers for a name.
    pub(super) fn order(&self, situation: NameSituation<'_>) -> SourceOrder {
        let mut steps = Vec::new();
        let mut files_first = false;
        let mut because = None;
        for source in &self.0 {
            match (source.role(situation), source.continues) {
                (SourceRole::Nothing, _) => {}
                (SourceRole::Files, Some(continues)) => {
                    files_first |= steps.is_empty() && because.is_none();
                    steps.push(SourceStep::Files(continues));
                    // What follows is never asked.
                    if !continues.if_not_found && because.is_none() {
                        return SourceOrder::Own(steps);
                    }
                }
                (SourceRole::Dns, Some(continues)) => steps.push(SourceStep::Dns(continues)),
                (SourceRole::Unknown, _) | (_, None) => {
                    because.get_or_insert_with(|| source.name.clone());
                }
            }
        }
        match because {
            Some(because) => SourceOrder::HostResolver { files_first, because },
            None if steps.is_empty() => {
                SourceOrder::HostResolver { files_first, because: "no source".to_owned() }
            }
            None => SourceOrder::Own(steps),
        }
    }
}

/// What a source does for a name.
enum SourceRole {
    Files,
    Dns,
    /// It never has the name.
    Nothing,
    Unknown,
}

impl ListedSource {
    fn role(&self, situation: NameSituation<'_>) -> SourceRole {
        let NameSituation { name, host_name, has_mdns_allow } = situation;
        match self.name.as_str() {
            "files" => SourceRole::Files,
            "dns" => SourceRole::Dns,
            "myhostname" => {
                let is_its_own = is_of_this_host(name, host_name);
                let goes_on = self.continues.is_some_and(|continues| continues.if_not_found);
                if is_its_own || !goes_on { SourceRole::Unknown } else { SourceRole::Nothing }
            }
            // The module answers for `.local` (RFC 6762 §3), and is unavailable for the rest.
            mdns if mdns.starts_with("mdns") => {
                let is_its_own = name == "local" || name.ends_with(".local") || has_mdns_allow;
                let goes_on = self.continues.is_some_and(|continues| continues.if_unavailable);
                if is_its_own || !goes_on { SourceRole::Unknown } else { SourceRole::Nothing }
            }
            _ => SourceRole::Unknown,
        }
    }
}

/// Returns whether nss-myhostname(8) answers for the name. The host may have no name that we know.
fn is_of_this_host(name: &str, host_name: &str) -> bool {
    let local = name.strip_suffix(".localdomain").unwrap_or(name);
    local == "localhost"
        || local.ends_with(".localhost")
        || matches!(name, "_gateway" | "gateway" | "_outbound")
        || host_name.is_empty()
        || name.eq_ignore_ascii_case(host_name)
}

/// Reads sources with their actions: `files [NOTFOUND=return] dns`.
fn sources_of(text: &str) -> Vec<ListedSource> {
    let mut sources: Vec<ListedSource> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(actions) = rest.strip_prefix('[') {
            let (actions, after) = actions.split_once(']').unwrap_or((actions, ""));
            match sources.last_mut() {
                Some(source) => {
                    source.continues = source.continues.and_then(|before| {
                        actions.split_ascii_whitespace().try_fold(before, with_action)
                    });
                }
                None => {
                    sources.push(ListedSource { name: format!("[{actions}]"), continues: None })
                }
            }
            rest = after.trim_start();
        } else {
            let end =
                rest.find(|c: char| c == '[' || c.is_ascii_whitespace()).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let continues = Some(SourceContinuation::default());
            sources.push(ListedSource { name: name.to_owned(), continues });
            rest = after.trim_start();
        }
    }
    sources
}

/// Applies one action, such as `NOTFOUND=return` or `!UNAVAIL=return`; `None` if it is not
/// understood.
fn with_action(before: SourceContinuation, action: &str) -> Option<SourceContinuation> {
    let (status, action) = action.split_once('=')?;
    let (status, is_negated) = match status.strip_prefix('!') {
        Some(status) => (status, true),
        None => (status, false),
    };
    let goes_on = match action.to_ascii_lowercase().as_str() {
        "return" => false,
        "continue" => true,
        // Merging results is not understood.
        _ => return None,
    };
    let status = status.to_ascii_lowercase();
    let is_known = matches!(status.as_str(), "success" | "notfound" | "unavail" | "tryagain");
    let applies = |to: &str| (status == to) != is_negated;
    if !is_known || (goes_on && applies("success")) {
        return None;
    }
    let next = |to: &str, before: bool| if applies(to) { goes_on } else { before };
    Some(SourceContinuation {
        if_not_found: next("notfound", before.if_not_found),
        if_unavailable: next("unavail", before.if_unavailable),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: SourceStep = SourceStep::Files(ALL);
    const DNS: SourceStep = SourceStep::Dns(ALL);
    const ALL: SourceContinuation = SourceContinuation { if_not_found: true, if_unavailable: true };
    const UNLESS_FOUND_OUT: SourceContinuation = SourceContinuation { if_not_found: false, ..ALL };
    const ONLY_UNAVAILABLE: SourceContinuation = UNLESS_FOUND_OUT;

    fn order_of(line: &str, name: &str, has_mdns_allow: bool) -> SourceOrder {
        let situation = NameSituation { name, host_name: "Box", has_mdns_allow };
        NameSwitch::parse(line.as_bytes()).order(situation)
    }

    fn order(line: &str, name: &str) -> SourceOrder {
        order_of(line, name, false)
    }

    fn host_resolver(files_first: bool, because: &str) -> SourceOrder {
        SourceOrder::HostResolver { files_first, because: because.to_owned() }
    }

    #[test]
    fn what_is_understood_is_done_here() {
        let own: &[(&str, &[SourceStep])] = &[
            ("", &[FILES, DNS]),
            ("passwd: files sss\n", &[FILES, DNS]),
            ("#hosts: sss", &[FILES, DNS]),
            ("hosts: files dns", &[FILES, DNS]),
            ("hosts:files dns # resolve", &[FILES, DNS]),
            ("  hosts :\tfiles\tdns", &[FILES, DNS]),
            ("hosts: sss\nhosts: dns files", &[DNS, FILES]),
            ("hosts: dns", &[DNS]),
            ("hosts: files", &[FILES]),
            ("hosts: files mdns4_minimal [NOTFOUND=return] dns", &[FILES, DNS]),
            ("hosts: files mdns_minimal [NOTFOUND=return] dns mdns myhostname", &[FILES, DNS]),
            ("hosts: files dns myhostname", &[FILES, DNS]),
            ("hosts: files[notfound=RETURN]dns", &[SourceStep::Files(UNLESS_FOUND_OUT)]),
            ("hosts: files [NOTFOUND=return] sss", &[SourceStep::Files(UNLESS_FOUND_OUT)]),
            ("hosts: dns [!UNAVAIL=return] files", &[SourceStep::Dns(ONLY_UNAVAILABLE), FILES]),
            ("hosts: dns [NOTFOUND=return] files", &[SourceStep::Dns(UNLESS_FOUND_OUT), FILES]),
            ("hosts: files [SUCCESS=return NOTFOUND=continue] dns", &[FILES, DNS]),
        ];
        for (line, steps) in own {
            assert_eq!(order(line, "a.test"), SourceOrder::Own(steps.to_vec()), "{line:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_to_the_host() {
        let not_own = [
            ("hosts: files resolve dns", true, "resolve"),
            ("hosts: resolve [!UNAVAIL=return] files myhostname dns", false, "resolve"),
            ("hosts: mymachines files dns", false, "mymachines"),
            ("hosts: files sss dns", true, "sss"),
            ("hosts: files wins", true, "wins"),
            ("hosts: nis files", false, "nis"),
            ("hosts: dns sss", false, "sss"),
            ("hosts: files [SUCCESS=merge] dns", false, "files"),
            ("hosts: files [SUCCESS=continue] dns", false, "files"),
            ("hosts: files [!NOTFOUND=continue] dns", false, "files"),
            ("hosts: files dns [WHATEVER=return]", true, "dns"),
            ("hosts: files dns [NOTFOUND]", true, "dns"),
            ("hosts: [NOTFOUND=return] files", false, "[NOTFOUND=return]"),
            ("hosts: files mdns4_minimal [UNAVAIL=return] dns", true, "mdns4_minimal"),
            ("hosts: files myhostname [NOTFOUND=return] dns", true, "myhostname"),
            ("hosts:", false, "no source"),
            ("hosts: Files", false, "Files"),
        ];
        for (line, files_first, because) in not_own {
            assert_eq!(order(line, "a.test"), host_resolver(files_first, because), "{line:?}");
        }
    }

    #[test]
    fn the_name_decides_about_some_sources() {
        let mdns = "hosts: files mdns4_minimal [NOTFOUND=return] dns";
        assert_eq!(order(mdns, "printer.local"), host_resolver(true, "mdns4_minimal"));
        assert_eq!(order(mdns, "printer.local.test"), SourceOrder::Own(vec![FILES, DNS]));
        assert_eq!(order_of(mdns, "a.test", true), host_resolver(true, "mdns4_minimal"));
        let own = "hosts: files dns myhostname";
        for name in ["box", "localhost", "a.localhost", "_gateway", "localhost.localdomain"] {
            assert_eq!(order(own, name), host_resolver(true, "myhostname"), "{name}");
        }
        assert_eq!(order(own, "box.test"), SourceOrder::Own(vec![FILES, DNS]));
        assert_eq!(order("hosts: files dns", "box"), SourceOrder::Own(vec![FILES, DNS]));
        assert_eq!(order("hosts: files dns", "a.local"), SourceOrder::Own(vec![FILES, DNS]));
    }
}
