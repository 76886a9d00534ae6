//! One association from start to end: both sides do their steps, in a time of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::content;
use crate::link::{Link, Trouble};
use crate::side::{Failure, Happened, Outgoing, Side};

/// No meeting takes longer, in its own time.
const PATIENCE: Duration = Duration::from_secs(600);

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Step {
    /// Messages of these sizes in turn, on these streams in turn.
    Send(Messages),
    /// Until that many have come in all.
    Receive(u64),
    /// Until everything is acknowledged.
    Dry,
    Sleep(Duration),
    /// The link changes.
    Trouble(Trouble),
    Reset(Vec<u16>),
    Shutdown,
    Abort,
    /// Until the association ends.
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

/// What came to one side.
#[derive(Default)]
pub struct Arrived {
    pub messages: u64,
    pub bytes: u64,
    pub bad: u64,
    pub disordered: u64,
    pub happened: Vec<Happened>,
    /// The number of the last message on each stream.
    last: BTreeMap<u16, u32>,
}

/// One side with what it has to do.
struct Player {
    side: Box<dyn Side>,
    steps: Vec<Step>,
    step: usize,
    /// Messages of the step that are sent already, and of all steps.
    sent: (u32, u32),
    /// When a sleep ends.
    until: Option<Duration>,
    arrived: Arrived,
    is_up: bool,
    has_ended: bool,
    asked_to_end: bool,
    echoes: bool,
    back: Vec<Outgoing>,
}

/// Both of them.
pub struct Meeting {
    players: [Player; 2],
    pub link: Link,
    pub now: Duration,
}

impl Player {
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
            asked_to_end: false,
            echoes,
            back: Vec::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.step >= self.steps.len()
    }

    /// Goes as far as possible.
    fn play(&mut self, now: Duration, link: &mut Link) -> Result<(), Failure> {
        self.look();
        self.take_messages(now);
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
            self.asked_to_end = false;
        }
        self.look();
        Ok(())
    }

    /// Whether a step is done.
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
            Step::Trouble(trouble) => link.trouble = *trouble,
            Step::Reset(streams) => self.side.reset(now, streams)?,
            Step::Shutdown | Step::Abort if !self.asked_to_end => {
                self.asked_to_end = true;
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

    fn look(&mut self) {
        while let Some(happened) = self.side.poll() {
            self.is_up |= happened == Happened::Up;
            self.has_ended |= matches!(happened, Happened::Closed | Happened::Lost(_));
            self.arrived.happened.push(happened);
        }
    }

    fn take_messages(&mut self, now: Duration) {
        while let Some(message) = self.side.receive(now) {
            self.arrived.take(message.stream, &message.data);
            if self.echoes {
                let (stream, data) = (message.stream, message.data);
                let back = Outgoing { stream, unordered: false, retransmissions: None, data };
                self.back.push(back);
            }
        }
        // From the front, as far as there is room.
        let room = |message: &Outgoing| !matches!(self.side.send(now, message), Ok(true));
        let sent = self.back.iter().position(room).unwrap_or(self.back.len());
        self.back.drain(..sent);
    }
}

impl Arrived {
    fn take(&mut self, stream: u16, data: &Bytes) {
        let (index, good) = content::look(data);
        self.messages += 1;
        self.bytes += data.len() as u64;
        self.bad += u64::from(!good);
        if let Some(index) = index {
            let before = self.last.insert(stream, index);
            self.disordered += u64::from(before.is_some_and(|before| before >= index));
        }
    }

    /// Whether it was told of this.
    pub fn was_told(&self, what: &Happened) -> bool {
        self.happened.contains(what)
    }

    /// Whether the association broke, as far as this side knows.
    pub fn was_lost(&self) -> bool {
        self.happened.iter().any(|it| matches!(it, Happened::Lost(_)))
    }
}

impl Meeting {
    pub fn new(connector: Box<dyn Side>, listener: Box<dyn Side>, seed: u64) -> Self {
        let players = [connector, listener].map(|side| Player::new(side, Vec::new(), false));
        Self { players, link: Link::new(seed), now: Duration::ZERO }
    }

    pub fn steps(mut self, connector: Vec<Step>, listener: Vec<Step>) -> Self {
        let [one, other] = &mut self.players;
        (one.steps, other.steps) = (connector, listener);
        self
    }

    /// The listener sends everything back.
    pub fn with_echo(mut self) -> Self {
        self.players[1].echoes = true;
        self
    }

    /// Lets both do their steps; gives what came to the connector and to the listener.
    pub fn run(&mut self, both_connect: bool) -> Result<(), Failure> {
        self.players[0].side.connect(self.now)?;
        if both_connect {
            self.players[1].side.connect(self.now)?;
        }
        loop {
            self.turn()?;
            if self.players.iter().all(Player::is_done) {
                return Ok(());
            }
            let due = self.players.iter().filter_map(|it| it.side.timeout());
            let due = due.chain(self.players.iter().filter_map(|it| it.until));
            let next = due.chain(self.link.timeout()).min();
            let next = next.ok_or_else(|| self.stands("nothing more would ever happen"))?;
            // Time goes on, whatever a side says.
            self.now = next.max(self.now + Duration::from_micros(1));
            if self.now > PATIENCE {
                return Err(self.stands("it takes too long"));
            }
        }
    }

    /// What there is to do at this moment.
    fn turn(&mut self) -> Result<(), Failure> {
        while let Some((to, packet)) = self.link.arrived(self.now) {
            self.players[to].side.handle(self.now, packet);
            self.settle(to)?;
        }
        for number in 0..2 {
            if self.players[number].side.timeout().is_some_and(|at| at <= self.now) {
                self.players[number].side.tick(self.now);
            }
            self.settle(number)?;
        }
        Ok(())
    }

    /// Lets a side go on, and carries what it has to say.
    fn settle(&mut self, number: usize) -> Result<(), Failure> {
        let mut packets = Vec::new();
        for _ in 0..2 {
            let player = &mut self.players[number];
            player.play(self.now, &mut self.link)?;
            player.side.transmit(self.now, &mut packets);
            player.look();
        }
        for packet in packets {
            self.link.offer(self.now, 1 - number, packet);
        }
        Ok(())
    }

    pub fn arrived(&self) -> (&Arrived, &Arrived) {
        (&self.players[0].arrived, &self.players[1].arrived)
    }

    fn stands(&self, why: &str) -> Failure {
        let at = |player: &Player| match player.steps.get(player.step) {
            Some(Step::Send(_)) => format!("sends its message {}", player.sent.1),
            Some(step) => format!("is at {step:?}"),
            None => "is done".into(),
        };
        let [one, other] = &self.players;
        format!("{why}: the connector {}, the listener {}", at(one), at(other)).into()
    }
}
