//! What DNS servers say, and do not say.

use eyas::Resolver;
use eyas::race::dns::{DnsFailure, Query, QueryId, RecordType};

use crate::common::dns::{self, Says};
use crate::common::wait;

async fn failure(says: Says) -> DnsFailure {
    let server = dns::serve(says).await;
    let query =
        Query { id: QueryId(7), name: "host.example".into(), record_type: RecordType::Aaaa };
    let answer = wait(Resolver::server(server.address).query(&query, 443)).await;
    assert_eq!(answer.id, QueryId(7));
    assert!(!answer.protected);
    answer.records.unwrap_err()
}

#[tokio::test]
async fn failures_are_told_apart() {
    assert_eq!(failure(Says::NoData).await, DnsFailure::NoData);
    assert_eq!(failure(Says::NoSuchName).await, DnsFailure::NoSuchName);
    assert_eq!(failure(Says::ServerFailure).await, DnsFailure::ServerFailure);
}

#[tokio::test]
async fn a_server_that_is_silent_is_a_timeout() {
    assert_eq!(failure(Says::Nothing).await, DnsFailure::Timeout);
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_malformed() {
    assert_eq!(failure(Says::Nonsense).await, DnsFailure::Malformed);
}
