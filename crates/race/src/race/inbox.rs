//! Orders inputs that arrived at the same instant.

use alloc::vec::Vec;

use crate::evidence::Level;
use crate::io::Input;

/// Inputs that are stored but not yet applied.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox(Vec<Input>);

impl Inbox {
    pub(super) fn push(&mut self, input: Input) {
        self.0.push(input);
    }

    /// Takes the inputs, in an order that does not depend on their order of arrival.
    pub(super) fn take(&mut self) -> Vec<Input> {
        let mut inputs = core::mem::take(&mut self.0);
        if inputs.len() > 1 {
            inputs.sort_by_key(rank);
        }
        inputs
    }

    /// Takes back the emptied buffer of [`Inbox::take`] for reuse.
    pub(super) fn recycle(&mut self, emptied: Vec<Input>) {
        if self.0.is_empty() {
            self.0 = emptied;
        }
    }
}

/// Returns the sort key of an input: the network first, since it ends the attempts on the old one;
/// the progress of an attempt before its end; cancellation last.
fn rank(input: &Input) -> (u8, u32, Level) {
    match input {
        Input::NetworkChanged(_) => (0, 0, Level::Started),
        Input::Slots(_) => (1, 0, Level::Started),
        Input::Answer(answer) => (2, answer.id.0, Level::Started),
        // What an attempt shows after a fallback is evidence about another transport.
        Input::FellBack { id } => (3, id.0, Level::Started),
        Input::Progress { id, level, .. } => (3, id.0, *level),
        Input::Ready { id, .. } => (4, id.0, Level::Started),
        Input::Failed { id, .. } => (5, id.0, Level::Started),
        Input::Cancel => (6, 0, Level::Started),
        Input::Tick => (7, 0, Level::Started),
    }
}
