//! Mapping of streams to paths (Dreibholz et al., PFLDNeT 2010 §4).

use super::super::AssociationSender;
use super::is_used;
use crate::config::StreamMapping;
use crate::identifier::{PathId, StreamId};
use crate::path::{AssociationPaths, PathState};

/// The streams that may send on one path.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct PathMapping<'a> {
    mapping: &'a StreamMapping,
    path: PathId,
    /// The index of the path in the order of paths.
    index: usize,
    paths: &'a AssociationPaths,
}

impl<'a> PathMapping<'a> {
    pub(in crate::send) fn new(
        mapping: &'a StreamMapping,
        path: PathId,
        paths: &'a AssociationPaths,
    ) -> Self {
        let index = paths.iter().position(|other| other.id == path).unwrap_or(usize::MAX);
        Self { mapping, path, index, paths }
    }

    /// Returns whether a message of this stream, or the rest of one, may be sent on the path. A
    /// requested path is used while it works. `is_started`: a started message blocks all others.
    pub(in crate::send) fn admits(
        &self,
        stream: StreamId,
        requested: Option<PathId>,
        is_started: bool,
    ) -> bool {
        if let Some(requested) = requested
            && self.paths.get(requested).is_some_and(|path| path.state() == PathState::Active)
        {
            return requested == self.path;
        }
        if is_started {
            return true;
        }
        let index = match self.mapping {
            StreamMapping::RoundRobin | StreamMapping::Automatic => return true,
            StreamMapping::Table(table) => {
                match table.binary_search_by_key(&stream, |(stream, _)| *stream) {
                    Ok(at) => table[at].1,
                    Err(_) => return true,
                }
            }
            StreamMapping::Modulo => usize::from(stream.0) % self.paths.len(),
        };
        index == self.index || !self.is_active(index)
    }

    /// Returns whether the path at an index is active.
    fn is_active(&self, index: usize) -> bool {
        self.paths.iter().nth(index).is_some_and(|path| path.state() == PathState::Active)
    }
}

impl AssociationSender {
    /// Returns whether new data may be sent on a path now, as far as buffers and streams are
    /// concerned.
    pub(in crate::send) fn may_carry_new(
        &mut self,
        path: PathId,
        paths: &AssociationPaths,
    ) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let (send_buffer, free) = (self.queue.limit(), self.peer_window());
        if self.queue.unsent() == 0
            || !is_used(path, paths)
            || !concurrent.has_share(path, paths, &self.outstanding, send_buffer, free)
        {
            return false;
        }
        let Some(path_entry) = paths.get(path) else { return false };
        let whole =
            path_entry.mtu().saturating_sub(self.terms.overhead() + self.terms.chunk_header());
        if self.waits_for_more(whole) {
            return false;
        }
        self.queue.on_packet();
        let Some(slot) = self.choose_for_multipath(path, paths) else { return false };
        let head = self.queue.stream(slot).and_then(|stream| self.queue.message(stream.head));
        head.is_some_and(|message| {
            let length = message.unsent().min(whole).min(self.rules.max_segment.into());
            self.peer_window.admits(length, self.in_flight())
        })
    }
}
