//! Queries to the host's name servers, for the names that its search list makes of a name.

use std::sync::Arc;

use eyas_race::dns::{DnsFailure, RecordType};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use hickory_proto::op::Message;

use super::super::encryption_choice::EncryptionChoice;
use super::super::name_servers::{FoundRecords, NameServers};
use super::AskedName;
use super::in_flight::InFlight;
use super::resolv_conf::ResolvConf;
use super::search::{self, AskDns, SearchResult, candidates, known, search};

/// The name servers of one configuration.
#[derive(Debug)]
pub(super) struct SystemDns {
    conf: Arc<ResolvConf>,
    servers: NameServers,
    searches: InFlight<(String, bool), Result<SearchResult, DnsFailure>>,
}

/// Names are asked of these servers, on behalf of several callers.
struct SharedDns(Arc<SystemDns>);

impl AskDns for SharedDns {
    fn ask(&self, name: &str, record_type: RecordType) -> search::SharedAnswer {
        if record_type == RecordType::Aaaa && self.0.conf.no_aaaa {
            return known(Err(DnsFailure::NoData));
        }
        let (dns, name) = (Arc::clone(&self.0), name.to_owned());
        async move { dns.servers.query(&name, record_type).await }.boxed().shared()
    }
}

impl SystemDns {
    pub(super) fn new(conf: Arc<ResolvConf>, encryption: &EncryptionChoice) -> Self {
        let servers = encryption.servers(&conf.servers, &conf.search, conf.options.clone());
        Self { conf, servers, searches: InFlight::default() }
    }

    /// Returns the name servers.
    pub(super) const fn servers(&self) -> &NameServers {
        &self.servers
    }

    pub(super) fn is_of(&self, conf: &Arc<ResolvConf>) -> bool {
        Arc::ptr_eq(&self.conf, conf)
    }

    pub(super) async fn forward(&self, query: &Message) -> Result<Vec<u8>, DnsFailure> {
        self.servers.forward(query).await
    }

    pub(super) fn forget(&self) {
        self.servers.forget();
    }

    /// Returns the records of a name that have expired, but not long ago: of the first of its names that had an
    /// address.
    pub(super) fn expired(
        &self,
        asked: AskedName<'_>,
        record_type: RecordType,
    ) -> Option<FoundRecords> {
        let names = candidates(&self.conf, asked.host, asked.is_absolute);
        let counts = |name: &str| names.len() == 1 || self.servers.has_addresses(name);
        let name = names.iter().map(|candidate| &candidate.name).find(|name| counts(name))?;
        self.servers.expired(&format!("{}{name}", asked.prefix), record_type)
    }

    /// Returns the answer to a query, or why the name as a whole has none. If it `is_last`, nobody
    /// else is asked for the name, and the difference does not matter.
    pub(super) async fn query(
        self: &Arc<Self>,
        asked: AskedName<'_>,
        record_type: RecordType,
        is_last: bool,
    ) -> Result<FoundRecords, DnsFailure> {
        let names = candidates(&self.conf, asked.host, asked.is_absolute);
        let Some(first) = names.first().map(|candidate| candidate.name.clone()) else {
            return Err(DnsFailure::NoSuchName);
        };
        let servers = SharedDns(Arc::clone(self));
        let owner = |name: &str| format!("{}{name}", asked.prefix);
        if is_last && names.len() == 1 {
            return Ok(servers.ask(&owner(&first), record_type).await);
        }
        let key = (asked.host.to_owned(), asked.is_absolute);
        let searched =
            self.searches.join(key, || search(SharedDns(Arc::clone(self)), names).boxed());
        if record_type != RecordType::Https {
            return Ok(searched.await?.addresses(record_type).await);
        }
        // The first name is the usual one, so its records are asked for meanwhile.
        let early = servers.ask(&owner(&first), record_type);
        let searched = match select(searched, early.clone()).await {
            Either::Left((searched, _)) => searched,
            Either::Right((_, searched)) => searched.await,
        };
        let as_it_is = match searched {
            Ok(searched) if *searched.name == *first => return Ok(early.await),
            Ok(searched) => return Ok(servers.ask(&owner(&searched.name), record_type).await),
            Err(_) if first == asked.host => early.await,
            Err(_) => servers.ask(&owner(asked.host), record_type).await,
        };
        // A name without addresses may be an alias by its HTTPS records (RFC 9460 §2.4.2).
        match (as_it_is.records.is_ok(), searched) {
            (false, Err(failure)) => Err(failure),
            _ => Ok(as_it_is),
        }
    }
}

#[cfg(test)]
mod tests {
    use eyas_race::dns::{DnsRecords, HttpsRecord};

    use super::*;

    fn asked(host: &str, is_absolute: bool) -> AskedName<'_> {
        AskedName { host, prefix: "", is_absolute }
    }

    fn address(last: u8) -> FoundRecords {
        let records = Ok(DnsRecords::A(vec![[192, 0, 2, last].into()]));
        FoundRecords { records, is_authentic: false }
    }

    fn https() -> FoundRecords {
        let records = Ok(DnsRecords::Https(vec![HttpsRecord::default()]));
        FoundRecords { records, is_authentic: true }
    }

    #[test]
    fn expired_records_are_those_of_the_name_that_had_an_address() {
        let conf = ResolvConf { search: vec!["x".into(), "y".into()], ..ResolvConf::default() };
        let dns = SystemDns::new(Arc::new(conf), &EncryptionChoice::default());
        let expired = |host, kind| dns.expired(asked(host, false), kind);
        assert_eq!(expired("a", RecordType::A), None);
        dns.servers.insert_expired("a.y", address(1), RecordType::A);
        dns.servers.insert_expired("a.y", https(), RecordType::Https);
        dns.servers.insert_expired("a", address(2), RecordType::A);
        dns.servers.insert_expired("a.x", https(), RecordType::Https);
        assert_eq!(expired("a", RecordType::A), Some(address(1)), "a.y comes before a");
        assert_eq!(expired("a", RecordType::Https), Some(https()));
        assert_eq!(expired("a", RecordType::Aaaa), None);
        assert_eq!(dns.expired(asked("a", true), RecordType::A), Some(address(2)));
        assert_eq!(dns.expired(asked("a.x", true), RecordType::Https), Some(https()));
        let own = AskedName { prefix: "_8443._https.", ..asked("a.y", true) };
        assert_eq!(dns.expired(own, RecordType::Https), None, "that of the port is another name");
        dns.forget();
        assert_eq!(expired("a", RecordType::A), None);
    }
}
