//! A complete association: both sides execute their steps, in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::content;
use crate::link::{Impairments, Link};
use crate::side::{Failure, Outgoing, Side, SideEvent};

/// The time limit of an exchange, in virtual time.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// A step of a side.
#[derive(Clone, Debug)]
pub enum Step {
    /// Messages of these sizes in turn, on these streams in turn.
    Send(Messages),
    /// Waits until that many messages have arrived in total.
    Receive(u64),
    /// Waits until everything is acknowledged.
    Dry,
    Sleep(Duration),
    /// Changes the impairments of the link.
    Impairments(Impairments),
    Reset(Vec<u16>),
    Shutdown,
    Abort,
    /// Waits until the association ends.
    Wait,
}

/// Messages to send.
#[derive(Clone, Debug)]
pub struct Messages {
    pub count: u32,
    pub sizes: Vec<usize>,
    pub streams: u16,
    pub unordered: bool,
    pub retransmissions: Option<u16>,
}

/// What one side has received.
#[derive(Default)]
pub struct Arrived {
    pub messages: u64,
    pub bytes: u64,
    pub bad: u64,
    pub disordered: u64,
    pub events: Vec<SideEvent>,
    /// The number of the last message on each stream.
    last: BTreeMap<u16, u32>,
}

/// A side and its steps.
struct Actor {
    side: Box<dyn Side>,
    steps: Vec<Step>,
    step: usize,
    /// The number of messages sent in this step, and in all steps.
    sent: (u32, u32),
    /// The end of a sleep.
    until: Option<Duration>,
    arrived: Arrived,
    is_up: bool,
    has_ended: bool,
    end_requested: bool,
    echoes: bool,
    echo_queue: Vec<Outgoing>,
}

/// Both sides and their link.
pub struct Exchange {
    actors: [Actor; 2],
    pub link: Link,
    pub now: Duration,
}

impl Actor {
    fn new(side: Box<dyn Side>, steps: Vec<Step>, echoes: bool) -> Self {
        Self {
            side,
            steps,
            step: 0,
            sent: (0, 0),
            until: None,
            arrived: Arrived::default(),
            is_up: false,
            has_ended: false,
            end_requested: false,
            echoes,
            echo_queue: Vec::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.step >= self.steps.len()
    }

    /// Executes steps as far as possible.
    fn execute(&mut self, now: Duration, link: &mut Link) -> Result<(), Failure> {
        self.poll_events();
        self.receive_messages(now);
        while self.is_up
            && let Some(step) = self.steps.get(self.step).cloned()
        {
            if self.has_ended && !matches!(step, Step::Shutdown | Step::Abort | Step::Wait) {
                return Err(format!("the association ended before {step:?}").into());
            }
            if !self.attempt(now, &step, link)? {
                break;
            }
            self.step += 1;
            self.end_requested = false;
        }
        self.poll_events();
        Ok(())
    }

    /// Attempts a step; returns whether it is done.
    fn attempt(&mut self, now: Duration, step: &Step, link: &mut Link) -> Result<bool, Failure> {
        match step {
            Step::Send(messages) => return self.send(now, messages),
            Step::Receive(count) => return Ok(self.arrived.messages >= *count),
            Step::Dry => return Ok(self.side.is_dry()),
            Step::Sleep(length) => {
                let until = *self.until.get_or_insert(now + *length);
                if now < until {
                    return Ok(false);
                }
                self.until = None;
            }
            Step::Impairments(impairments) => link.impairments = *impairments,
            Step::Reset(streams) => self.side.reset(now, streams)?,
            Step::Shutdown | Step::Abort if !self.end_requested => {
                self.end_requested = true;
                match step {
                    Step::Abort => self.side.abort(now)?,
                    _ => self.side.shutdown(now)?,
                }
                return Ok(false);
            }
            Step::Shutdown | Step::Abort | Step::Wait => return Ok(self.has_ended),
        }
        Ok(true)
    }

    fn send(&mut self, now: Duration, messages: &Messages) -> Result<bool, Failure> {
        while self.sent.0 < messages.count {
            let at = self.sent.0 as usize;
            let size = messages.sizes[at % messages.sizes.len()];
            let outgoing = Outgoing {
                stream: (self.sent.0 % u32::from(messages.streams)) as u16,
                unordered: messages.unordered,
                retransmissions: messages.retransmissions,
                data: content::message(self.sent.1, size),
            };
            if !self.side.send(now, &outgoing)? {
                return Ok(false);
            }
            self.sent = (self.sent.0 + 1, self.sent.1 + 1);
        }
        self.sent.0 = 0;
        Ok(true)
    }

    fn poll_events(&mut self) {
        while let Some(event) = self.side.poll() {
            self.is_up |= event == SideEvent::Up;
            self.has_ended |= matches!(event, SideEvent::Closed | SideEvent::Lost(_));
            self.arrived.events.push(event);
        }
    }

    fn receive_messages(&mut self, now: Duration) {
        while let Some(message) = self.side.receive(now) {
            self.arrived.record(message.stream, &message.data);
            if self.echoes {
                let (stream, data) = (message.stream, message.data);
                let echo = Outgoing { stream, unordered: false, retransmissions: None, data };
                self.echo_queue.push(echo);
            }
        }
        // In order, as far as there is room.
        let is_full = |message: &Outgoing| !matches!(self.side.send(now, message), Ok(true));
        let sent = self.echo_queue.iter().position(is_full).unwrap_or(self.echo_queue.len());
        self.echo_queue.drain(..sent);
    }
}

impl Arrived {
    fn record(&mut self, stream: u16, data: &Bytes) {
        let (index, good) = content::check(data);
        self.messages += 1;
        self.bytes += data.len() as u64;
        self.bad += u64::from(!good);
        if let Some(index) = index {
            let before = self.last.insert(stream, index);
            self.disordered += u64::from(before.is_some_and(|before| before >= index));
        }
    }

    /// Returns whether this event was reported.
    pub fn has_event(&self, event: &SideEvent) -> bool {
        self.events.contains(event)
    }

    /// Returns whether this side has lost the association.
    pub fn was_lost(&self) -> bool {
        self.events.iter().any(|it| matches!(it, SideEvent::Lost(_)))
    }
}

impl Exchange {
    pub fn new(connector: Box<dyn Side>, listener: Box<dyn Side>, seed: u64) -> Self {
        let actors = [connector, listener].map(|side| Actor::new(side, Vec::new(), false));
        Self { actors, link: Link::new(seed), now: Duration::ZERO }
    }

    pub fn steps(mut self, connector: Vec<Step>, listener: Vec<Step>) -> Self {
        let [one, other] = &mut self.actors;
        (one.steps, other.steps) = (connector, listener);
        self
    }

    /// Makes the listener echo everything.
    pub fn with_echo(mut self) -> Self {
        self.actors[1].echoes = true;
        self
    }

    /// Executes the steps of both sides.
    pub fn run(&mut self, both_connect: bool) -> Result<(), Failure> {
        self.actors[0].side.connect(self.now)?;
        if both_connect {
            self.actors[1].side.connect(self.now)?;
        }
        loop {
            self.turn()?;
            if self.actors.iter().all(Actor::is_done) {
                return Ok(());
            }
            let due = self.actors.iter().filter_map(|it| it.side.timeout());
            let due = due.chain(self.actors.iter().filter_map(|it| it.until));
            let next = due.chain(self.link.timeout()).min();
            let next = next.ok_or_else(|| self.stuck("no timer is running"))?;
            // Time advances, even if a timer is in the past.
            self.now = next.max(self.now + Duration::from_micros(1));
            if self.now > TIME_LIMIT {
                return Err(self.stuck("the exchange takes too long"));
            }
        }
    }

    /// Handles everything that is due now.
    fn turn(&mut self) -> Result<(), Failure> {
        while let Some((to, packet)) = self.link.arrived(self.now) {
            self.actors[to].side.handle(self.now, packet);
            self.settle(to)?;
        }
        for number in 0..2 {
            if self.actors[number].side.timeout().is_some_and(|at| at <= self.now) {
                self.actors[number].side.tick(self.now);
            }
            self.settle(number)?;
        }
        Ok(())
    }

    /// Executes a side's steps, and sends its packets.
    fn settle(&mut self, number: usize) -> Result<(), Failure> {
        let mut packets = Vec::new();
        for _ in 0..2 {
            let actor = &mut self.actors[number];
            actor.execute(self.now, &mut self.link)?;
            actor.side.transmit(self.now, &mut packets);
            actor.poll_events();
        }
        for packet in packets {
            self.link.send(self.now, 1 - number, packet);
        }
        Ok(())
    }

    pub fn arrived(&self) -> (&Arrived, &Arrived) {
        (&self.actors[0].arrived, &self.actors[1].arrived)
    }

    fn stuck(&self, why: &str) -> Failure {
        let at = |actor: &Actor| match actor.steps.get(actor.step) {
            Some(Step::Send(_)) => format!("is sending message {}", actor.sent.1),
            Some(step) => format!("is in {step:?}"),
            None => "is done".into(),
        };
        let [one, other] = &self.actors;
        format!("{why}: the connector {}, the listener {}", at(one), at(other)).into()
    }
}
