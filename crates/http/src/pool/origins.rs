//! The state of each origin: what the lock protects, without time and tasks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use http::Version;
use tokio::time::Instant;

use super::{
    Key, PoolLimits,
    connection::{Connection, Leased, State},
};
use crate::connection_report::ConnectionReport;

/// All origins.
#[derive(Default)]
pub(super) struct Origins {
    origins: BTreeMap<Key, Origin>,
    /// The number of open connections, including those in use.
    open: usize,
    pub(super) is_reaper_running: bool,
}

#[derive(Default)]
struct Origin {
    shared: Option<Connection>,
    /// Idle HTTP/1.1 connections, the longest idle first.
    idle: Vec<Connection>,
    /// HTTP/1.1 connections in use.
    leased_out: Vec<Weak<State>>,
    /// The number of open connections, including those in use.
    open: usize,
    /// Requests that are opening a connection.
    dialling: usize,
    /// Whether the last connection could not be shared, so that it is no use to wait for another
    /// request's.
    speaks_http1: bool,
}

/// What a request that needs a connection should do.
pub(super) enum Next {
    /// Use this one.
    Use(Leased),
    /// Open one.
    Dial,
    /// Wait until something changes.
    Wait,
    /// Wait until something changes, but not for long.
    WaitBriefly,
}

/// The conditions under which a connection is available.
pub(super) struct Conditions<'a> {
    pub(super) limits: &'a PoolLimits,
    pub(super) now: Instant,
    /// Whether to wait for a connection that is about to be returned.
    pub(super) patient: bool,
    /// When the connection must have been opened at the earliest.
    pub(super) opened_since: Option<Instant>,
}

impl Conditions<'_> {
    fn allow(&self, connection: &Connection) -> bool {
        !connection.is_doubted()
            && self.opened_since.is_none_or(|since| connection.opened() >= since)
    }
}

impl Origins {
    /// Returns the number of open connections.
    pub(super) fn open_count(&self) -> usize {
        self.open
    }

    pub(super) fn open(&mut self, key: &Key) {
        self.open += 1;
        self.origins.entry(key.clone()).or_default().open += 1;
        self.assert_sum();
    }

    pub(super) fn closed(&mut self, key: &Key) {
        let origin = self.origins.get_mut(key);
        debug_assert!(
            origin.as_ref().is_some_and(|origin| origin.open > 0),
            "a slot is freed twice"
        );
        self.open = self.open.saturating_sub(1);
        if let Some(origin) = origin {
            origin.open = origin.open.saturating_sub(1);
        }
        self.assert_sum();
        self.forget_if_empty(key);
    }

    pub(super) fn dial_ended(&mut self, key: &Key) {
        let origin = self.origins.get_mut(key);
        debug_assert!(
            origin.as_ref().is_some_and(|origin| origin.dialling > 0),
            "a dial ended twice"
        );
        if let Some(origin) = origin {
            origin.dialling = origin.dialling.saturating_sub(1);
        }
        self.forget_if_empty(key);
    }

    /// Checks that every slot belongs to one origin.
    fn assert_sum(&self) {
        debug_assert_eq!(
            self.open,
            self.origins.values().map(|origin| origin.open).sum::<usize>(),
            "slots that belong to no origin"
        );
    }

    /// Decides what the request should do. Connections to drop after the lock is released are added
    /// to `closing`.
    pub(super) fn next(
        &mut self,
        key: &Key,
        conditions: &Conditions<'_>,
        closing: &mut Vec<Connection>,
    ) -> Next {
        let limits = conditions.limits;
        let origin = self.origins.entry(key.clone()).or_default();
        origin.drop_closed(closing);
        if let Some(leased) = origin.ready(conditions, closing) {
            return Next::Use(leased);
        }
        if conditions.patient && origin.is_about_to_return() {
            return Next::WaitBriefly;
        }
        let others = origin.dialling;
        if others > 0 && !origin.speaks_http1 {
            return Next::Wait;
        }
        if origin.open + others >= limits.per_origin {
            return Next::Wait;
        }
        let dialling: usize = self.origins.values().map(|origin| origin.dialling).sum();
        if self.open + dialling >= limits.total {
            // Dropping it frees its slot, which wakes the waiters.
            closing.extend(self.longest_idle());
            return Next::Wait;
        }
        if let Some(origin) = self.origins.get_mut(key) {
            origin.dialling += 1;
        }
        Next::Dial
    }

    fn longest_idle(&mut self) -> Option<Connection> {
        let key = self
            .origins
            .iter()
            .filter_map(|(key, origin)| Some((origin.idle_since()?, key)))
            .min_by_key(|(since, _)| *since)
            .map(|(_, key)| key.clone())?;
        self.origins.get_mut(&key)?.take_longest_idle()
    }

    /// Adds a connection and returns those that it replaces.
    pub(super) fn insert(&mut self, key: &Key, connection: Connection) -> Vec<Connection> {
        let origin = self.origins.entry(key.clone()).or_default();
        if connection.state.version < Version::HTTP_2 {
            origin.speaks_http1 = origin.shared.is_none();
            origin.leased_out.retain(|state| state.as_ptr() != Arc::as_ptr(&connection.state));
            return match origin.shared {
                Some(_) => vec![connection],
                None => {
                    // Most origins have a single connection, and a growing vector would allocate
                    // four.
                    origin.idle.reserve_exact(1);
                    origin.idle.push(connection);
                    Vec::new()
                }
            };
        }
        origin.speaks_http1 = false;
        if let Some(present) = &origin.shared
            && !present.is_closed()
            && !present.is_doubted()
            && present.state.version > connection.state.version
        {
            return vec![connection];
        }
        let mut replaced = std::mem::take(&mut origin.idle);
        replaced.extend(origin.shared.replace(connection));
        replaced
    }

    /// Records that the last connection turned out to be HTTP/1.1, in use by the request that
    /// opened it.
    pub(super) fn leased_out(&mut self, key: &Key, leased: &Leased) {
        let origin = self.origins.entry(key.clone()).or_default();
        origin.speaks_http1 = origin.shared.is_none();
        origin.leased_out(leased);
    }

    pub(super) fn retire_where(
        &mut self,
        key: &Key,
        matches: impl Fn(&ConnectionReport) -> bool,
    ) -> Vec<Connection> {
        let Some(origin) = self.origins.get_mut(key) else { return Vec::new() };
        let mut retired: Vec<_> =
            origin.idle.extract_if(.., |idle| matches(idle.report())).collect();
        retired.extend(origin.shared.take_if(|shared| matches(shared.report())));
        retired
    }

    /// Removes a connection, and those of its origin that were last used before `deadline`.
    pub(super) fn bury(
        &mut self,
        key: &Key,
        report: &ConnectionReport,
        deadline: Instant,
    ) -> Vec<Connection> {
        let Some(origin) = self.origins.get_mut(key) else { return Vec::new() };
        let mut removed: Vec<_> =
            origin.idle.extract_if(.., |idle| idle.last_used() <= deadline).collect();
        removed.extend(origin.shared.take_if(|shared| std::ptr::eq(shared.report(), report)));
        removed
    }

    pub(super) fn clear(&mut self) -> Vec<Connection> {
        let mut removed = Vec::new();
        for origin in self.origins.values_mut() {
            removed.append(&mut origin.idle);
            removed.extend(origin.shared.take());
            origin.speaks_http1 = false;
        }
        removed
    }

    /// Removes connections that are closed or have been idle since before `deadline`. Also returns
    /// whether any connections are left to watch.
    pub(super) fn sweep(&mut self, deadline: Instant) -> (Vec<Connection>, bool) {
        let mut removed = Vec::new();
        for origin in self.origins.values_mut() {
            origin.drop_closed(&mut removed);
            removed.extend(origin.idle.extract_if(.., |idle| is_idle_since(idle, deadline)));
            removed.extend(origin.shared.take_if(|shared| is_idle_since(shared, deadline)));
        }
        let left =
            self.origins.values().any(|origin| origin.shared.is_some() || !origin.idle.is_empty());
        (removed, left)
    }

    pub(super) fn has_http3(&self, key: &Key) -> bool {
        self.origins.get(key).and_then(|origin| origin.shared.as_ref()).is_some_and(|shared| {
            shared.state.version == Version::HTTP_3 && !shared.is_closed() && !shared.is_doubted()
        })
    }

    fn forget_if_empty(&mut self, key: &Key) {
        if self.origins.get(key).is_some_and(|origin| {
            origin.open == 0
                && origin.dialling == 0
                && origin.shared.is_none()
                && origin.idle.is_empty()
        }) {
            self.origins.remove(key);
        }
    }
}

fn is_idle_since(connection: &Connection, deadline: Instant) -> bool {
    connection.idle_since().is_some_and(|since| since <= deadline)
}

impl Origin {
    fn drop_closed(&mut self, closing: &mut Vec<Connection>) {
        closing.extend(self.shared.take_if(|shared| shared.is_closed()));
        closing.extend(self.idle.extract_if(.., |idle| idle.is_closed()));
    }

    /// Returns the shared connection, or the idle one that was used last.
    fn ready(
        &mut self,
        conditions: &Conditions<'_>,
        closing: &mut Vec<Connection>,
    ) -> Option<Leased> {
        let shared = self.shared.as_ref().filter(|shared| conditions.allow(shared));
        if let Some(leased) = shared.and_then(Connection::share) {
            return Some(leased);
        }
        let newest = self.idle.pop_if(|newest| conditions.allow(newest))?;
        let since = newest.last_used();
        if conditions.now.saturating_duration_since(since) >= conditions.limits.idle_timeout {
            // The most recently used is too old, so all are.
            closing.push(newest);
            closing.append(&mut self.idle);
            return None;
        }
        let leased = newest.into_lease();
        self.leased_out(&leased);
        Some(leased)
    }

    fn leased_out(&mut self, leased: &Leased) {
        self.leased_out.retain(|state| state.strong_count() > 0);
        self.leased_out.push(leased.watch());
    }

    /// Returns whether a connection's last response has been read but the connection is not back in
    /// the pool yet.
    fn is_about_to_return(&self) -> bool {
        self.leased_out.iter().filter_map(Weak::upgrade).any(|state| !state.is_in_use())
    }

    fn idle_since(&self) -> Option<Instant> {
        self.idle.iter().chain(&self.shared).filter_map(Connection::idle_since).min()
    }

    fn take_longest_idle(&mut self) -> Option<Connection> {
        let since = self.idle_since()?;
        if self.shared.as_ref().and_then(Connection::idle_since) == Some(since) {
            return self.shared.take();
        }
        let at = self.idle.iter().position(|idle| idle.idle_since() == Some(since))?;
        Some(self.idle.remove(at))
    }
}
