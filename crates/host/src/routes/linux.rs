//! `/proc/net/route` and `/proc/net/ipv6_route`.

use super::{HostRoute, parse_v4, parse_v6};

pub(super) fn read() -> Vec<HostRoute> {
    let table = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut routes = parse_v4(&table("/proc/net/route"));
    routes.extend(parse_v6(&table("/proc/net/ipv6_route")));
    routes
}
