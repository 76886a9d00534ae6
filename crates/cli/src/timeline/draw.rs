//! Draws lanes as lines.

use eyas::race::evidence::EvidenceLevel;

use super::scale::TimeScale;
use super::{LaneEnd, RaceTimeline, TimelineLane};
use crate::terminal::{OutputStyle, Paint, PaintedLine, columns};

/// The indentation of the names.
const INDENT: usize = 2;
/// The maximum width of names; longer ones are shortened.
const NAME_MAX: usize = 30;
/// The minimum width of the bars.
const BAR_MIN: usize = 12;
/// The maximum width of the bars: longer ones are harder to compare, not easier.
const BAR_MAX: usize = 48;
/// The maximum space reserved for notes.
const NOTE_MAX: usize = 26;

/// The characters of a picture.
struct PictureGlyphs {
    waiting: char,
    answered: char,
    transport: char,
    secure: char,
    won: char,
    took_over: char,
    ready: char,
    failed: char,
    closed: char,
    continues: char,
    grid: char,
    ellipsis: char,
}

const UNICODE: PictureGlyphs = PictureGlyphs {
    waiting: '░',
    answered: '▒',
    transport: '▓',
    secure: '█',
    won: '✔',
    took_over: '▲',
    ready: '●',
    failed: '✘',
    closed: '○',
    continues: '▸',
    grid: '·',
    ellipsis: '…',
};

const ASCII: PictureGlyphs = PictureGlyphs {
    waiting: '.',
    answered: '-',
    transport: '=',
    secure: '#',
    won: '*',
    took_over: '^',
    ready: '+',
    failed: 'x',
    closed: 'o',
    continues: '>',
    grid: ' ',
    ellipsis: '~',
};

impl PictureGlyphs {
    const fn from_style(style: OutputStyle) -> &'static Self {
        if style.unicode { &UNICODE } else { &ASCII }
    }

    const fn phase(&self, level: EvidenceLevel) -> char {
        match level {
            EvidenceLevel::Started => self.waiting,
            EvidenceLevel::Answered => self.answered,
            EvidenceLevel::Transport => self.transport,
            EvidenceLevel::Security | EvidenceLevel::FirstByte | EvidenceLevel::FullPacket => {
                self.secure
            }
        }
    }

    const fn end(&self, end: LaneEnd) -> char {
        match end {
            LaneEnd::Won => self.won,
            LaneEnd::TookOver => self.took_over,
            LaneEnd::Ready => self.ready,
            LaneEnd::Failed => self.failed,
            LaneEnd::Closed => self.closed,
            LaneEnd::UnderWay => self.continues,
        }
    }
}

const fn end_paint(end: LaneEnd) -> Paint {
    match end {
        LaneEnd::Won | LaneEnd::TookOver => Paint::Good,
        LaneEnd::Ready => Paint::Plain,
        LaneEnd::Failed => Paint::Bad,
        LaneEnd::Closed | LaneEnd::UnderWay => Paint::Dim,
    }
}

/// Draws the lanes under a scale. Nothing is drawn for no lanes.
pub(crate) fn draw(timeline: &RaceTimeline, style: OutputStyle) -> Vec<PaintedLine> {
    draw_titled("", timeline, style)
}

/// Like [`draw`], with a title to the left of the scale.
pub(crate) fn draw_titled(
    title: &str,
    timeline: &RaceTimeline,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    if timeline.lanes.is_empty() {
        return Vec::new();
    }
    let glyphs = PictureGlyphs::from_style(style);
    let widest = |text: fn(&TimelineLane) -> &str, max: usize| {
        timeline.lanes.iter().map(|lane| columns(text(lane))).max().unwrap_or(0).min(max)
    };
    let names = widest(|lane| &lane.name, NAME_MAX);
    let notes = widest(|lane| &lane.note, NOTE_MAX);
    let left = INDENT + names.max(columns(title)) + 2;
    let room = style.width.saturating_sub(left + 1 + notes);
    let scale = TimeScale::fit(timeline, room.clamp(BAR_MIN, BAR_MAX));
    let mut lines = vec![ruler(title, &scale, left)];
    for lane in &timeline.lanes {
        let mut line = PaintedLine::new();
        line.pad_to(INDENT);
        line.push(lane.paint, shortened(&lane.name, names, glyphs.ellipsis));
        line.pad_to(left);
        bar(&mut line, lane, &scale, glyphs);
        line.pad_to(left + scale.columns + 1);
        line.push(end_paint(lane.end), &lane.note);
        lines.push(line);
    }
    lines
}

/// Shortens names that are too long in the middle: both ends of an address distinguish it from
/// others.
pub(super) fn shortened(name: &str, room: usize, ellipsis: char) -> String {
    let length = columns(name);
    if length <= room || room < 3 {
        return name.to_owned();
    }
    let tail = (room - 1) / 2;
    let head = room - 1 - tail;
    let start: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(length - tail).collect();
    format!("{start}{ellipsis}{end}")
}

/// Returns the numbers above the bars.
fn ruler(title: &str, scale: &TimeScale, left: usize) -> PaintedLine {
    let mut line = PaintedLine::new();
    line.pad_to(INDENT);
    line.push(Paint::Dim, title);
    for (column, text) in scale.ticks() {
        line.pad_to(left + column);
        line.push(Paint::Dim, text);
    }
    line
}

/// Draws the bar of one lane: the grid, its phases, its end.
fn bar(line: &mut PaintedLine, lane: &TimelineLane, scale: &TimeScale, glyphs: &PictureGlyphs) {
    let grid: Vec<usize> = scale.ticks().into_iter().map(|(column, _)| column).collect();
    let start = scale.column(lane.started);
    let end = lane.ended.and_then(|ended| scale.column(ended));
    for column in 0..scale.columns {
        let has_started = start.is_some_and(|start| column >= start);
        let has_ended = end.is_some_and(|end| column > end);
        match (has_started && !has_ended, Some(column) == end) {
            (true, true) => line.push(end_paint(lane.end), glyphs.end(lane.end)),
            (true, false) if end.is_none() && column + 1 == scale.columns => {
                line.push(Paint::Dim, glyphs.continues);
            }
            (true, false) => {
                let glyph = glyphs.phase(lane.level_at(scale.middle(column)));
                line.push(lane.paint, glyph);
            }
            (false, _) if grid.contains(&column) => line.push(Paint::Dim, glyphs.grid),
            (false, _) => line.push(Paint::Plain, ' '),
        }
    }
}

/// Returns the meaning of the characters.
pub(crate) fn legend(style: OutputStyle) -> PaintedLine {
    let glyphs = PictureGlyphs::from_style(style);
    let mut line = PaintedLine::new();
    line.pad_to(INDENT);
    let phases = [
        (glyphs.waiting, "waiting"),
        (glyphs.answered, "answered"),
        (glyphs.transport, "transport"),
    ];
    for (glyph, meaning) in phases {
        line.push(Paint::Plain, glyph);
        line.push(Paint::Dim, format!(" {meaning}  "));
    }
    let ends = [
        (LaneEnd::Won, "won"),
        (LaneEnd::TookOver, "took over"),
        (LaneEnd::Failed, "failed"),
        (LaneEnd::Closed, "not needed"),
    ];
    for (end, meaning) in ends {
        line.push(end_paint(end), glyphs.end(end));
        line.push(Paint::Dim, format!(" {meaning}  "));
    }
    line
}
