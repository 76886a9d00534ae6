//! Many associations: how fast they are established, and the memory that they use when idle.

use std::time::Instant;

use bytes::Bytes;

use crate::measure::{Answer, Start, resident};
use crate::pair::Pair;

/// Establishes `count` associations in turn, and sends one message on each.
pub(crate) fn open(count: u64) -> Result<Answer, Box<dyn std::error::Error>> {
    let epoch = Instant::now();
    let mut pair = Pair::new();
    let mut ids = Vec::with_capacity(count as usize);
    let message = Bytes::from_static(&[0x5a; 64]);
    let before = resident();
    let start = Start::now();
    for _ in 0..count {
        let ours = pair.client.connect(epoch.elapsed())?;
        while pair.turn(epoch.elapsed())? {}
        ids.push((ours, pair.server.up.take().ok_or("an association did not come up")?));
    }
    let mut answer = start.answer(count, 0);
    for (ours, theirs) in ids {
        pair.client.send(epoch.elapsed(), ours, &message)?;
        while pair.turn(epoch.elapsed())? {}
        pair.server.receive(epoch.elapsed(), theirs).ok_or("a message is lost")?;
    }
    answer.memory = (resident() - before) / count as f64;
    Ok(answer)
}
