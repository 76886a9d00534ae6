//! Which streams may send on a path (Dreibholz et al., PFLDNeT 2010 §4).

use super::super::Sender;
use super::is_used;
use crate::config::StreamMapping;
use crate::identifier::{PathId, StreamId};
use crate::path::{PathState, Paths};

/// For one path: which streams may send on it.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct Mapping<'a> {
    mapping: &'a StreamMapping,
    path: PathId,
    /// The place of the path in the order of paths.
    place: usize,
    paths: &'a Paths,
}

impl<'a> Mapping<'a> {
    pub(in crate::send) fn new(mapping: &'a StreamMapping, path: PathId, paths: &'a Paths) -> Self {
        let place = paths.iter().position(|other| other.id == path).unwrap_or(usize::MAX);
        Self { mapping, path, place, paths }
    }

    /// Whether a message of this stream, or the rest of one, may go on the path. One that wishes
    /// for a path takes that one while it works. `is_begun`: it is in the way of all others.
    pub(in crate::send) fn admits(
        &self,
        stream: StreamId,
        wish: Option<PathId>,
        is_begun: bool,
    ) -> bool {
        if let Some(wish) = wish
            && self.paths.get(wish).is_some_and(|path| path.state() == PathState::Active)
        {
            return wish == self.path;
        }
        if is_begun {
            return true;
        }
        let place = match self.mapping {
            StreamMapping::RoundRobin | StreamMapping::Automatic => return true,
            StreamMapping::Table(table) => {
                match table.binary_search_by_key(&stream, |(stream, _)| *stream) {
                    Ok(at) => table[at].1,
                    Err(_) => return true,
                }
            }
            StreamMapping::Modulo => usize::from(stream.0) % self.paths.len(),
        };
        place == self.place || !self.works(place)
    }

    /// Whether the path at a place works.
    fn works(&self, place: usize) -> bool {
        self.paths.iter().nth(place).is_some_and(|path| path.state() == PathState::Active)
    }
}

impl Sender {
    /// Whether new data may go on a path now, as far as buffers and streams are concerned.
    pub(in crate::send) fn may_carry_new(&mut self, path: PathId, paths: &Paths) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let (send_buffer, free) = (self.queue.limit(), self.peer_window());
        if self.queue.unsent() == 0
            || !is_used(path, paths)
            || !concurrent.has_share(path, paths, &self.outstanding, send_buffer, free)
        {
            return false;
        }
        let Some(way) = paths.get(path) else { return false };
        let whole = way.mtu().saturating_sub(self.terms.overhead() + self.terms.chunk_header());
        if self.waits_for_more(whole) {
            return false;
        }
        self.queue.on_packet();
        let Some(slot) = self.choose_of_several(path, paths) else { return false };
        let head = self.queue.stream(slot).and_then(|stream| self.queue.message(stream.head));
        head.is_some_and(|message| {
            let length = message.unsent().min(whole).min(self.rules.max_segment.into());
            self.peer_window.admits(length, self.in_flight())
        })
    }
}
