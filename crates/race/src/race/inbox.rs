//! Brings facts that arrived together into a fixed order.

use alloc::vec::Vec;

use crate::evidence::Level;
use crate::io::Input;

/// Inputs that were noted and not yet applied.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox(Vec<Input>);

impl Inbox {
    pub(super) fn push(&mut self, input: Input) {
        self.0.push(input);
    }

    /// The inputs in an order that does not depend on the order of arrival.
    pub(super) fn take(&mut self) -> Vec<Input> {
        let mut inputs = core::mem::take(&mut self.0);
        if inputs.len() > 1 {
            inputs.sort_by_key(rank);
        }
        inputs
    }

    /// Takes back what [`Inbox::take`] gave, now empty, to be filled again.
    pub(super) fn give_back(&mut self, emptied: Vec<Input>) {
        if self.0.is_empty() {
            self.0 = emptied;
        }
    }
}

/// The network first, since attempts of the old one end with it; an attempt's progress before
/// its end; the caller's last word last.
fn rank(input: &Input) -> (u8, u32, Level) {
    match input {
        Input::NetworkChanged(_) => (0, 0, Level::Started),
        Input::Slots(_) => (1, 0, Level::Started),
        Input::Answer(answer) => (2, answer.id.0, Level::Started),
        Input::Progress { id, level, .. } => (3, id.0, *level),
        Input::Ready { id, .. } => (4, id.0, Level::Started),
        Input::Failed { id, .. } => (5, id.0, Level::Started),
        Input::Cancel => (6, 0, Level::Started),
        Input::Tick => (7, 0, Level::Started),
    }
}
