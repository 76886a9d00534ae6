//! Names as this host resolves them: its hosts file, its name servers and search list, in the order
//! of its nsswitch.conf; and its own resolver where that is not understood whole.
//!
//! | rule | source |
//! | --- | --- |
//! | a name in the hosts file is answered from it alone | hosts(5), `nss_files` of glibc |
//! | files are read again when they have changed, a millisecond ago or earlier | resolv.conf(5), glibc since 2.26 |
//! | all record types of a name come from the same searched name | `res_search` of glibc with both families |
//! | what is not understood is left to getaddrinfo(3) | `hostLookupOrder` of Go |
//! | macOS and Windows answer themselves for addresses | mDNSResponder, `getaddrinfo` of Winsock |
//! | `localhost` is this host | RFC 6761 §6.3 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use eyas_host::interfaces;
use eyas_race::candidate::AddressFamily;
use eyas_race::dns::{DnsFailure, DnsRecords, RecordType};
use eyas_race::policy::AddressTable;
use futures_util::FutureExt;
use hickory_proto::op::Message;

mod dns;
mod file;
mod gai_conf;
mod host_resolver;
mod hosts;
mod in_flight;
mod nsswitch;
mod platform;
mod resolv_conf;
mod search;

use dns::SystemDns;
use file::WatchedFile;
use host_resolver::LookupResult;
use hosts::{HostAddresses, records};
use in_flight::InFlight;
use nsswitch::{NameSituation, NameSwitch, SourceOrder, SourceStep};
use resolv_conf::{ProcessSurroundings, ResolvConf};

use super::NameSource;
#[cfg(feature = "encrypted-dns")]
use super::encryption::ServerEncryption;
use super::encryption_choice::EncryptionChoice;
use super::name_servers::FoundRecords;

/// The addresses of `localhost`, whatever else says so (RFC 6761 §6.3).
const LOOPBACK: [IpAddr; 2] = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)];

/// The host's name resolution.
#[derive(Debug)]
pub(super) struct SystemResolver {
    hosts: WatchedFile<HostAddresses>,
    /// Whether every line of the hosts file with a name counts.
    every_line: WatchedFile<bool>,
    resolv_conf: WatchedFile<ResolvConf>,
    /// Where they are not in a file.
    name_servers: platform::NameServers,
    switch: WatchedFile<NameSwitch>,
    address_table: WatchedFile<Option<Arc<AddressTable>>>,
    surroundings: ProcessSurroundings,
    /// The name servers of the latest configuration, with their answers.
    dns: Mutex<Option<Arc<SystemDns>>>,
    lookups: InFlight<(String, Option<AddressFamily>), LookupResult>,
    encryption: EncryptionChoice,
}

/// A name that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedName<'a> {
    /// The host, in lower case and without a trailing dot.
    pub(super) host: &'a str,
    /// What stands before it in the owner name of its HTTPS records (RFC 9460 §9.1).
    pub(super) prefix: &'a str,
    /// Whether it is never searched.
    pub(super) is_absolute: bool,
}

/// The configuration at one moment.
struct SystemConfiguration {
    hosts: Arc<HostAddresses>,
    conf: Arc<ResolvConf>,
    switch: Arc<NameSwitch>,
}

/// Who answers for a name.
enum AnsweringSource {
    HostsFile,
    Loopback,
    Own(Vec<SourceStep>),
    HostResolver(String),
}

impl SystemResolver {
    pub(super) fn new(encryption: EncryptionChoice) -> Self {
        let surroundings = ProcessSurroundings::read();
        let host_conf = surroundings.host_conf.as_deref().unwrap_or(hosts::HOST_CONF_PATH.as_ref());
        Self {
            hosts: WatchedFile::new(hosts::PATH),
            every_line: WatchedFile::new(host_conf),
            resolv_conf: WatchedFile::new(resolv_conf::PATH),
            name_servers: platform::NameServers::new(),
            switch: WatchedFile::new(nsswitch::PATH),
            address_table: WatchedFile::new(gai_conf::PATH),
            surroundings,
            dns: Mutex::default(),
            lookups: InFlight::default(),
            encryption,
        }
    }

    /// Answers a query.
    pub(super) async fn query(
        &self,
        asked: AskedName<'_>,
        record_type: RecordType,
    ) -> FoundRecords {
        let now = self.configuration();
        let found = match now.way(asked.host, &self.surroundings) {
            AnsweringSource::HostsFile => {
                return self.answer_from(&now.hosts, asked.host, record_type);
            }
            AnsweringSource::Loopback => return local(records(&LOOPBACK, record_type)),
            AnsweringSource::Own(steps) => self.ask_own(&now, &steps, asked, record_type).await,
            AnsweringSource::HostResolver(_) if record_type == RecordType::Https => {
                self.ask_service(&now, asked).await
            }
            AnsweringSource::HostResolver(_) => {
                let records = match self.encryption.refusal_of_host_resolver() {
                    Some(why) => Err(DnsFailure::Local(why)),
                    None => self.ask_host(&now, asked, record_type).await,
                };
                records.map(|found| FoundRecords { records: Ok(found), is_authentic: false })
            }
        };
        found.unwrap_or_else(|failure| FoundRecords { records: Err(failure), is_authentic: false })
    }

    /// Returns the records of a name that have expired, but not long ago, if the name is asked of the name servers.
    pub(super) fn expired(
        &self,
        asked: AskedName<'_>,
        record_type: RecordType,
    ) -> Option<FoundRecords> {
        let now = self.configuration();
        match now.way(asked.host, &self.surroundings) {
            AnsweringSource::Own(_) if !now.hosts.has(asked.host) => {
                self.dns(&now.conf).expired(asked, record_type)
            }
            _ => None,
        }
    }

    /// Returns the name servers of the configuration that may be asked about a name unencrypted.
    pub(super) fn unencrypted_servers(&self, name: &str) -> Vec<SocketAddr> {
        let conf = self.conf();
        let dns = self.dns(&conf);
        let servers = conf.servers.iter().zip(dns.servers().ask_themselves(name));
        servers.filter(|(_, itself)| *itself).map(|(server, _)| *server).collect()
    }

    /// Passes on a query of somebody else to the name servers of the configuration.
    pub(super) async fn forward(&self, query: &Message) -> Result<Vec<u8>, DnsFailure> {
        self.dns(&self.configuration().conf).forward(query).await
    }

    /// Returns what is known of the encryption of each name server, after a look at what it designates if so wished.
    #[cfg(feature = "encrypted-dns")]
    pub(super) async fn encryption(&self, examines: bool) -> Vec<(SocketAddr, ServerEncryption)> {
        let conf = self.conf();
        let dns = self.dns(&conf);
        let known = match examines {
            true => dns.servers().examine_encryption().await,
            false => dns.servers().encryption(),
        };
        conf.servers.iter().copied().zip(known).collect()
    }

    /// Returns the addresses of a name.
    #[cfg(feature = "encrypted-dns")]
    pub(super) async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let asked = AskedName { host: name, prefix: "", is_absolute: true };
        let (aaaa, a) =
            tokio::join!(self.query(asked, RecordType::Aaaa), self.query(asked, RecordType::A));
        let mut addresses = Vec::new();
        for found in [aaaa, a] {
            match found.records {
                Ok(DnsRecords::Aaaa(v6)) => addresses.extend(v6.into_iter().map(IpAddr::V6)),
                Ok(DnsRecords::A(v4)) => addresses.extend(v4.into_iter().map(IpAddr::V4)),
                _ => {}
            }
        }
        addresses
    }

    /// Answers a query from the hosts file, if the name stands there and the host uses it.
    pub(super) fn hosts_answer(&self, host: &str, record_type: RecordType) -> Option<FoundRecords> {
        let hosts = self.hosts();
        // The switch is read only if it matters.
        (hosts.has(host) && self.switch().has_files())
            .then(|| self.answer_from(&hosts, host, record_type))
    }

    /// Returns the host's own table of address preferences, if it has one.
    pub(super) fn address_table(&self) -> Option<Arc<AddressTable>> {
        let table =
            self.address_table.current(|contents| gai_conf::parse(contents.unwrap_or_default()));
        Option::clone(&table)
    }

    /// Returns who answers for a name.
    pub(super) fn source_of(&self, host: &str, is_absolute: bool) -> NameSource {
        let now = self.configuration();
        let hosts_file = || NameSource::HostsFile { path: hosts::PATH.to_owned() };
        match now.way(host, &self.surroundings) {
            AnsweringSource::HostsFile => hosts_file(),
            AnsweringSource::Loopback => NameSource::Localhost,
            AnsweringSource::Own(steps)
                if steps.iter().all(|step| matches!(step, SourceStep::Files(_))) =>
            {
                hosts_file()
            }
            AnsweringSource::Own(_) => {
                let candidates = search::candidates(&now.conf, host, is_absolute);
                NameSource::Queries {
                    servers: now.conf.servers.clone(),
                    names: candidates.into_iter().map(|candidate| candidate.name).collect(),
                }
            }
            AnsweringSource::HostResolver(why) => NameSource::HostResolver { why },
        }
    }

    /// Returns the names that the search list makes of a name, besides itself.
    pub(super) fn searched_names(&self, host: &str) -> Vec<String> {
        let now = self.configuration();
        match now.way(host, &self.surroundings) {
            AnsweringSource::HostsFile | AnsweringSource::Loopback => Vec::new(),
            AnsweringSource::Own(_) | AnsweringSource::HostResolver(_) => {
                search::candidates(&now.conf, host, false)
                    .into_iter()
                    .filter_map(search::SearchCandidate::into_searched)
                    .collect()
            }
        }
    }

    /// Drops the answers of the name servers.
    pub(super) fn clear_cache(&self) {
        if let Some(dns) = self.dns.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            dns.forget();
        }
    }

    /// Asks the sources one after the other.
    async fn ask_own(
        &self,
        now: &SystemConfiguration,
        steps: &[SourceStep],
        asked: AskedName<'_>,
        record_type: RecordType,
    ) -> Result<FoundRecords, DnsFailure> {
        let mut failure = DnsFailure::NoSuchName;
        for (at, step) in steps.iter().enumerate() {
            let goes_on = match step {
                SourceStep::Files(_) if now.hosts.has(asked.host) => {
                    return Ok(self.answer_from(&now.hosts, asked.host, record_type));
                }
                SourceStep::Files(continues) => continues.if_not_found,
                SourceStep::Dns(continues) => {
                    let is_last = at + 1 == steps.len();
                    match self.dns(&now.conf).query(asked, record_type, is_last).await {
                        Ok(found) => return Ok(found),
                        Err(why) => {
                            failure = why;
                            continues.continues_after(&failure)
                        }
                    }
                }
            };
            if !goes_on {
                break;
            }
        }
        Err(failure)
    }

    /// Asks the host's own resolver for addresses.
    async fn ask_host(
        &self,
        now: &SystemConfiguration,
        asked: AskedName<'_>,
        record_type: RecordType,
    ) -> Result<DnsRecords, DnsFailure> {
        // One call for each family, so that neither waits for the other; but one for both where an
        // address of one decides which name or which source counts for the other.
        let is_searched = !asked.is_absolute && !now.conf.search.is_empty();
        let family = match record_type {
            _ if is_searched || now.hosts.has(asked.host) => None,
            RecordType::A => Some(AddressFamily::V4),
            RecordType::Aaaa | RecordType::Https => Some(AddressFamily::V6),
        };
        // A dot at the end keeps it from being searched, but would hide it in the hosts file.
        let dot = if asked.is_absolute && !now.hosts.has(asked.host) { "." } else { "" };
        let name = format!("{}{dot}", asked.host);
        let lookup = self
            .lookups
            .join((name.clone(), family), || host_resolver::look_up(name, family).boxed());
        records(&lookup.await?, record_type)
    }

    /// Queries the HTTPS records of a name whose addresses the host's own resolver knows.
    async fn ask_service(
        &self,
        now: &SystemConfiguration,
        asked: AskedName<'_>,
    ) -> Result<FoundRecords, DnsFailure> {
        let host = asked.host;
        // A name of the local link is none of DNS's business (RFC 6762 §22.1).
        let is_local = now.switch.has_mdns() && (host == "local" || host.ends_with(".local"));
        let is_own = now.switch.is_of_this_host(host, &self.surroundings.host_name);
        let in_file = now.switch.has_files() && now.hosts.has(host);
        if is_local || is_own || in_file || !now.switch.has_dns() {
            return Err(DnsFailure::NoData);
        }
        self.dns(&now.conf).query(asked, RecordType::Https, true).await
    }

    fn answer_from(
        &self,
        hosts: &HostAddresses,
        host: &str,
        record_type: RecordType,
    ) -> FoundRecords {
        let every_line = self
            .every_line
            .current(|contents| hosts::takes_every_line(contents.unwrap_or_default()));
        let every_line = self.surroundings.takes_every_line.unwrap_or(*every_line);
        let records = hosts.answer(host, every_line, record_type);
        local(records.unwrap_or(Err(DnsFailure::NoSuchName)))
    }

    fn configuration(&self) -> SystemConfiguration {
        SystemConfiguration { hosts: self.hosts(), conf: self.conf(), switch: self.switch() }
    }

    fn hosts(&self) -> Arc<HostAddresses> {
        self.hosts.current(|contents| HostAddresses::parse(contents.unwrap_or_default()))
    }

    fn conf(&self) -> Arc<ResolvConf> {
        if let Some(conf) = self.name_servers.current() {
            return conf;
        }
        self.resolv_conf.current(|contents| {
            ResolvConf::parse(contents.unwrap_or_default(), &self.surroundings, interfaces::index)
        })
    }

    fn switch(&self) -> Arc<NameSwitch> {
        self.switch
            .current(|contents| contents.map_or_else(|_| NameSwitch::default(), NameSwitch::parse))
    }

    /// Returns the name servers of this configuration. Those of an earlier one are dropped with their
    /// answers once nobody waits for them.
    fn dns(&self, conf: &Arc<ResolvConf>) -> Arc<SystemDns> {
        let mut dns = self.dns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dns) = dns.as_ref().filter(|dns| dns.is_of(conf)) {
            return Arc::clone(dns);
        }
        let new = Arc::new(SystemDns::new(Arc::clone(conf), &self.encryption));
        *dns = Some(Arc::clone(&new));
        new
    }
}

/// Returns an answer that never left this host.
fn local(records: Result<DnsRecords, DnsFailure>) -> FoundRecords {
    FoundRecords { records, is_authentic: true }
}

impl SystemConfiguration {
    /// Decides who answers for a name.
    fn way(&self, host: &str, surroundings: &ProcessSurroundings) -> AnsweringSource {
        let situation = NameSituation {
            name: host,
            host_name: &surroundings.host_name,
            has_mdns_allow: self.switch.has_mdns() && Path::new(nsswitch::MDNS_ALLOW_PATH).exists(),
        };
        let order = self.switch.order(situation);
        let files_first = match &order {
            SourceOrder::Own(steps) => matches!(steps.first(), Some(SourceStep::Files(_))),
            SourceOrder::HostResolver { files_first, .. } => *files_first,
        };
        if files_first && self.hosts.has(host) {
            return AnsweringSource::HostsFile;
        }
        if host == "localhost" || host.ends_with(".localhost") {
            return AnsweringSource::Loopback;
        }
        if let Some(why) = platform::RESOLVES_ITSELF {
            return AnsweringSource::HostResolver(why.to_owned());
        }
        match order {
            SourceOrder::HostResolver { because, .. } => {
                AnsweringSource::HostResolver(format!("{} names {because}", nsswitch::PATH))
            }
            SourceOrder::Own(steps)
                if steps.iter().any(|step| matches!(step, SourceStep::Dns(_))) =>
            {
                if let Some(setting) = &self.conf.unknown {
                    return AnsweringSource::HostResolver(format!(
                        "{} has {setting:?}",
                        resolv_conf::PATH
                    ));
                }
                if surroundings.has_aliases && !host.contains('.') {
                    return AnsweringSource::HostResolver("HOSTALIASES is set".to_owned());
                }
                AnsweringSource::Own(steps)
            }
            SourceOrder::Own(steps) => AnsweringSource::Own(steps),
        }
    }
}
