//! Handshakes over paths that lose and reorder packets.

use std::time::Duration;

use super::*;

/// What happens to a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Delivered,
    Lost,
    /// It arrives after this many that were sent later, or when nothing else is in flight.
    Overtaken(usize),
}

/// A path with a fate for each datagram, in the order of sending; all further ones are delivered.
struct Path {
    pair: Pair,
    fates: VecDeque<Fate>,
    /// Datagrams in flight: how many others arrive first, whether the client sent it, and its
    /// bytes.
    in_flight: VecDeque<(usize, bool, Vec<u8>)>,
}

impl Path {
    fn send(&mut self, out: Outcome, by_client: bool) {
        let packets = out.packets.into_iter().map(|packet| packet.to_vec());
        match by_client {
            true => self.pair.at_client.extend(packets),
            false => self.pair.at_server.extend(packets),
        }
        for datagram in out.datagrams {
            let after = match self.fates.pop_front().unwrap_or(Fate::Delivered) {
                Fate::Delivered => 0,
                Fate::Lost => continue,
                Fate::Overtaken(by) => by,
            };
            self.in_flight.push_back((after, by_client, datagram.to_vec()));
        }
    }

    /// Delivers datagrams until none is in flight.
    fn deliver(&mut self) {
        while let Some((after, by_client, datagram)) = self.in_flight.pop_front() {
            if after > 0 && !self.in_flight.is_empty() {
                self.in_flight.push_back((after - 1, by_client, datagram));
                continue;
            }
            let now = self.pair.now;
            let out = match by_client {
                true => self.pair.server.handle_datagram(now, address(5000), &datagram, || true),
                false => self.pair.client.handle_datagram(now, address(9899), &datagram, || true),
            };
            self.send(out, !by_client);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.pair.now += time;
        let now = self.pair.now;
        for (_, out) in self.pair.client.handle_timeout(now) {
            self.send(out, true);
        }
        for (_, out) in self.pair.server.handle_timeout(now) {
            self.send(out, false);
        }
        self.deliver();
    }
}

/// Returns how long it takes until a packet has reached the server and another one has come back.
fn round_trip(identity: &TestIdentity, fates: &[Fate]) -> Option<Duration> {
    let fates = fates.iter().copied().collect();
    let mut path = Path { pair: Pair::new(identity), fates, in_flight: VecDeque::new() };
    let started = path.pair.now;
    let own_identity = DtlsIdentity::anonymous().expect("an identity");
    let trust = trusting(identity).of_server(NAME);
    let out = path.pair.client.open(started, address(9899), &own_identity, trust, None);
    path.send(out, true);
    path.deliver();
    while path.pair.now - started < Duration::from_secs(30) {
        if matches!(path.pair.client.state(address(9899)), State::Over(_)) {
            return None;
        }
        let now = path.pair.now;
        let out = path.pair.client.send(now, address(9899), [&b"hello"[..]].into_iter());
        path.send(out, true);
        path.deliver();
        if !path.pair.at_server.is_empty() {
            let out = path.pair.server.send(now, address(5000), [&b"back"[..]].into_iter());
            path.send(out, false);
            path.deliver();
        }
        if !path.pair.at_client.is_empty() {
            return Some(now - started);
        }
        path.wait(Duration::from_millis(250));
    }
    None
}

/// Asserts that a session is established so soon, with these fates, that a flight was retransmitted
/// at most three times.
fn assert_established(identity: &TestIdentity, fates: &[Fate]) {
    let took = round_trip(identity, fates);
    assert!(took.is_some_and(|took| took < Duration::from_secs(8)), "{fates:?}: {took:?}");
}

#[test]
fn a_handshake_completes_whatever_is_lost() {
    let identity = TestIdentity::new();
    for (first, second) in (0..10).flat_map(|first| (1..3).map(move |gap| (first, first + gap))) {
        let mut fates = [Fate::Delivered; 12];
        fates[first] = Fate::Lost;
        fates[second] = Fate::Lost;
        assert_established(&identity, &fates);
    }
}

#[test]
fn a_handshake_completes_whatever_is_reordered() {
    let identity = TestIdentity::new();
    for (index, by) in (0..10).flat_map(|index| [1, 3].map(move |by| (index, by))) {
        let mut fates = [Fate::Delivered; 12];
        fates[index] = Fate::Overtaken(by);
        assert_established(&identity, &fates);
    }
}
