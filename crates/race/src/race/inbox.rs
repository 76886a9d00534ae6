//! Orders inputs that arrived at the same instant.

use alloc::vec::Vec;

use crate::evidence::EvidenceLevel;
use crate::io::RaceInput;

/// Inputs that are stored but not yet applied.
#[derive(Clone, Debug, Default)]
pub(super) struct RaceInbox(Vec<RaceInput>);

impl RaceInbox {
    pub(super) fn push(&mut self, input: RaceInput) {
        self.0.push(input);
    }

    /// Takes the inputs, in an order that does not depend on their order of arrival.
    pub(super) fn drain(&mut self) -> Vec<RaceInput> {
        let mut inputs = core::mem::take(&mut self.0);
        if inputs.len() > 1 {
            inputs.sort_by_key(rank);
        }
        inputs
    }

    /// Takes back the emptied buffer of [`RaceInbox::drain`] for reuse.
    pub(super) fn recycle(&mut self, emptied: Vec<RaceInput>) {
        if self.0.is_empty() {
            self.0 = emptied;
        }
    }
}

/// Returns the sort key of an input: the network first, since it ends the attempts on the old one;
/// the progress of an attempt before its end; cancellation last.
fn rank(input: &RaceInput) -> (u8, u32, EvidenceLevel) {
    match input {
        RaceInput::NetworkChanged(_) => (0, 0, EvidenceLevel::Started),
        RaceInput::Slots(_) => (1, 0, EvidenceLevel::Started),
        RaceInput::Answer(answer) => (2, answer.id.0, EvidenceLevel::Started),
        // What an attempt shows after a fallback is evidence about another transport.
        RaceInput::FellBack { id } | RaceInput::LongHelloFailed { id, .. } => {
            (3, id.0, EvidenceLevel::Started)
        }
        RaceInput::Progress { id, level, .. } => (3, id.0, *level),
        RaceInput::Ready { id, .. } => (4, id.0, EvidenceLevel::Started),
        RaceInput::Failed { id, .. } => (5, id.0, EvidenceLevel::Started),
        RaceInput::Cancel => (6, 0, EvidenceLevel::Started),
        RaceInput::Tick => (7, 0, EvidenceLevel::Started),
    }
}
