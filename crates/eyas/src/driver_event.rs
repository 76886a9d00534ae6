//! The events that the driver of a race waits for.

use std::sync::Arc;

use eyas_race::dns::DnsAnswer;
use eyas_race::io::{AttemptId, NetworkView};

use crate::attempt::event::AttemptEvent;

/// An event from outside the race.
pub(crate) enum DriverEvent {
    Attempt(AttemptId, AttemptEvent),
    Answer(DnsAnswer),
    Network(Arc<NetworkView>),
    SlotFreed,
    TimerExpired,
}
