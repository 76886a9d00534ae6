//! The events that the driver of a race waits for.

use std::sync::Arc;

use eyas_race::dns::Answer;
use eyas_race::io::{AttemptId, NetworkView};

use crate::attempt::event::Event;

/// What happens to a race from outside.
pub(crate) enum DriverEvent {
    Attempt(AttemptId, Event),
    Answer(Answer),
    Network(Arc<NetworkView>),
    SlotFreed,
    TimeCame,
}
