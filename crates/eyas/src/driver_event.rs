//! The events that the driver of a race waits for.

use std::sync::Arc;

use eyas_race::dns::DnsAnswer;
use eyas_race::io::{AttemptId, NetworkView};

use crate::attempt::event::Event;

/// An event from outside the race.
pub(crate) enum DriverEvent {
    Attempt(AttemptId, Event),
    Answer(DnsAnswer),
    Network(Arc<NetworkView>),
    SlotFreed,
    TimerExpired,
}
