//! Messages from one side to the other, as fast as possible.

use std::time::Instant;

use bytes::Bytes;

use crate::measure::{Answer, Start};
use crate::pair::Pair;

/// Carries messages of one size from the client to the server.
pub(crate) fn transfer(size: usize, bytes: u64) -> Result<Answer, Box<dyn std::error::Error>> {
    let epoch = Instant::now();
    let mut pair = Pair::new();
    let ours = pair.client.connect(epoch.elapsed())?;
    while pair.turn(epoch.elapsed())? {}
    let theirs = pair.server.up.ok_or("the association did not come up")?;
    let message = Bytes::from(vec![0x5a; size]);
    let count = bytes.div_ceil(size as u64);
    let start = Start::now();
    let (mut sent, mut received) = (0, 0);
    while received < count {
        let now = epoch.elapsed();
        while sent < count && pair.client.send(now, ours, &message)? {
            sent += 1;
        }
        let moved = pair.turn(now)?;
        while let Some(length) = pair.server.receive(now, theirs) {
            if length != size {
                return Err(format!("a message of {length} bytes").into());
            }
            received += 1;
        }
        if !moved {
            // Only a timer can make progress: advance to it.
            let due = [pair.client.timeout, pair.server.timeout].into_iter().flatten().min();
            let due = due.ok_or("the transfer stalled")?;
            std::thread::sleep(due.saturating_sub(epoch.elapsed()));
        }
    }
    Ok(start.answer(count, count * size as u64))
}
