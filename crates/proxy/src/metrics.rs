//! The metrics of the proxy.

use eyas_http::metrics::Page;
use eyas_relay::destination::RequestRefusal;
use eyas_relay::handshake::HandshakeProtocol;

use crate::report::{ClientEnding, DropReason};
use crate::stats::ProxyStats;

/// Returns the page of metrics.
pub(crate) fn render(stats: &ProxyStats) -> String {
    let mut page = Page::default();
    page.gauge("eyas_proxy_connections", "Clients connected now.");
    page.row(stats.open);
    page.counter("eyas_proxy_connections_accepted_total", "Clients accepted.");
    page.row(stats.accepted);
    page.counter("eyas_proxy_connections_refused_total", "Clients closed at once by a limit.");
    page.row(stats.over_limit);
    page.counter("eyas_proxy_clients_total", "Clients that have disconnected, by protocol.");
    page.rows(
        "protocol",
        HandshakeProtocol::ALL.map(HandshakeProtocol::name).into_iter().zip(stats.protocols),
    );
    page.counter("eyas_proxy_ended_total", "Clients that have disconnected, by how they ended.");
    page.rows("end", ClientEnding::NAMES.into_iter().zip(stats.endings));
    page.counter("eyas_proxy_refused_total", "Clients that got no connection, by reason.");
    page.rows("reason", RequestRefusal::NAMES.into_iter().zip(stats.refusals));
    page.counter("eyas_proxy_races_won_total", "Races won, by what decided them.");
    let won = [("transport", stats.won_by_transport), ("first-byte", stats.won_by_first_byte)];
    page.rows("by", won);
    page.counter("eyas_proxy_bytes_total", "Bytes forwarded for clients that have disconnected.");
    page.rows("direction", [("sent", stats.sent), ("received", stats.received)]);
    page.gauge("eyas_proxy_associations", "UDP associations and CONNECT-UDP tunnels now.");
    page.row(stats.associations);
    page.counter(
        "eyas_proxy_datagrams_total",
        "Datagrams forwarded for clients that have disconnected.",
    );
    let passed = [("sent", stats.datagrams_sent), ("received", stats.datagrams_received)];
    page.rows("direction", passed);
    page.counter("eyas_proxy_datagrams_dropped_total", "Datagrams that were dropped, by reason.");
    page.rows("reason", DropReason::NAMES.into_iter().zip(stats.datagrams_dropped));
    page.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_described_and_every_row_has_a_value() {
        let page = render(&ProxyStats { sent: 7, ..ProxyStats::default() });
        assert!(page.contains("eyas_proxy_bytes_total{direction=\"sent\"} 7\n"), "{page}");
        let rows: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(rows.iter().all(|row| row.rsplit(' ').next().unwrap().parse::<u64>().is_ok()));
        assert_eq!(page.matches("# TYPE").count(), page.matches("# HELP").count());
    }
}
