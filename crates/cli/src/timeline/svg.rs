//! Draws lanes as a picture for pages: SVG, light and dark, and readable also where a page is narrow.

use std::time::Duration;

use eyas::race::evidence::EvidenceLevel;

use super::draw::shortened;
use super::scale::TimeScale;
use super::{LaneEnd, RaceTimeline, TimelineLane};
use crate::terminal::Paint;

/// The width of the picture in pixels: at 360, its letters are still 11 pixels high.
const WIDTH: f64 = 480.0;
/// The margin on all sides, which is also the room for half a mark at the end of a bar.
const MARGIN: f64 = 16.0;
/// The heights of the title, of the scale, of a lane and of a row of the legend.
const TITLE: f64 = 38.0;
const RULER: f64 = 24.0;
const LANE: f64 = 50.0;
const LEGEND: f64 = 24.0;
/// The place of a bar in its lane, below its name, and its height.
const BAR_TOP: f64 = 24.0;
const BAR: f64 = 14.0;
/// The maximum number of letters of a name, beside which there is room for a note.
const NAME_MAX: usize = 32;
/// The average width of a letter.
const LETTER: f64 = 7.5;
/// The phases of an attempt, from the first on: words of the legend and classes of the style.
const PHASES: [&str; 4] = ["waiting", "answered", "transport", "secure"];
/// The colours: those of a page in the light, then those in the dark.
const STYLE: &str = "<style>\n\
    svg { color: #1f2328; background: #ffffff } .dim { fill: #59636e } .grid { stroke: #d1d9e0 }\n\
    .quic { fill: #0a7d8c } .stream { fill: #0969da } .other { fill: #6e7781 }\n\
    .good { fill: #1a7f37; stroke: #1a7f37 } .bad { fill: #d1242f; stroke: #d1242f }\n\
    .quiet { fill: #59636e; stroke: #59636e } .paper { fill: #ffffff }\n\
    .waiting { opacity: .25 } .answered { opacity: .45 } .transport { opacity: .7 }\n\
    @media (prefers-color-scheme: dark) {\n\
    svg { color: #f0f6fc; background: #0d1117 } .dim { fill: #9198a1 } .grid { stroke: #3d444d }\n\
    .quic { fill: #39c5cf } .stream { fill: #4493f8 } .other { fill: #9198a1 }\n\
    .good { fill: #3fb950; stroke: #3fb950 } .bad { fill: #f85149; stroke: #f85149 }\n\
    .quiet { fill: #9198a1; stroke: #9198a1 } .paper { fill: #0d1117 }\n\
    .waiting { opacity: .3 }\n\
    }\n</style>\n";

/// Returns the picture as a file.
pub(crate) fn svg(title: &str, timeline: &RaceTimeline) -> String {
    let canvas = Canvas::fit(timeline);
    let lanes_end = TITLE + RULER + LANE * timeline.lanes.len() as f64;
    let (legend, legend_height) = legend(lanes_end + 8.0);
    let height = lanes_end + 8.0 + legend_height + MARGIN / 2.0;
    let mut file = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"15\" \
         fill=\"currentColor\">\n<title>{title}</title>\n{STYLE}\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n\
         <text x=\"{MARGIN}\" y=\"26\" font-weight=\"600\">{title}</text>\n",
        title = escaped(title),
    );
    file.push_str(&canvas.ruler(lanes_end));
    for (index, lane) in timeline.lanes.iter().enumerate() {
        file.push_str(&canvas.lane(lane, TITLE + RULER + LANE * index as f64));
    }
    file.push_str(&legend);
    file.push_str("</svg>\n");
    file
}

/// Where times are.
struct Canvas {
    scale: TimeScale,
}

impl Canvas {
    fn fit(timeline: &RaceTimeline) -> Self {
        // A number needs as much room as ten letters do in a terminal, where a column is one.
        Self { scale: TimeScale::fit(timeline, ((WIDTH - 2.0 * MARGIN) / LETTER) as usize) }
    }

    /// Returns the place of a time; what is beyond the picture ends at its edge.
    fn x(&self, time: Duration) -> f64 {
        let part = time.as_secs_f64() / self.scale.span.as_secs_f64();
        MARGIN + (WIDTH - 2.0 * MARGIN) * part.min(1.0)
    }

    /// Draws the numbers, and a line below each through all lanes.
    fn ruler(&self, bottom: f64) -> String {
        let (top, below) = (TITLE + 14.0, TITLE + RULER - 4.0);
        let tick = |(time, text): (Duration, String)| {
            let x = self.x(time);
            let anchor = match x {
                x if x < 2.0 * MARGIN => "start",
                x if x > WIDTH - 3.0 * MARGIN => "end",
                _ => "middle",
            };
            format!(
                "<path class=\"grid\" d=\"M{x:.1} {below}V{bottom}\"/>\
                 <text class=\"dim\" x=\"{x:.1}\" y=\"{top}\" font-size=\"13\" text-anchor=\"{anchor}\">{text}</text>\n"
            )
        };
        self.scale.tick_times().into_iter().map(tick).collect()
    }

    /// Draws a lane: name and note, below them the phases, and a mark where it ended.
    fn lane(&self, lane: &TimelineLane, top: f64) -> String {
        let text = top + 18.0;
        let mut drawn = format!(
            "<text class=\"{kind}\" x=\"{MARGIN}\" y=\"{text}\">{name}</text>\
             <text class=\"{outcome}\" style=\"stroke: none\" x=\"{right}\" y=\"{text}\" text-anchor=\"end\">{note}</text>\n",
            kind = kind(lane.paint),
            name = escaped(&shortened(&lane.name, NAME_MAX, '…')),
            outcome = outcome(lane.end),
            right = WIDTH - MARGIN,
            note = escaped(&lane.note),
        );
        let bar = top + BAR_TOP;
        let end = lane.ended.unwrap_or(Duration::MAX);
        let mut changes = vec![(lane.started, EvidenceLevel::Started)];
        changes.extend(lane.progress.iter().filter(|(at, _)| *at < end));
        for (index, (from, level)) in changes.iter().enumerate() {
            let until = changes.get(index + 1).map_or(end, |(at, _)| *at);
            let (left, width) = (self.x(*from), self.x(until) - self.x(*from));
            if width > 0.0 {
                drawn.push_str(&format!(
                    "<rect class=\"{} {}\" x=\"{left:.1}\" y=\"{bar}\" width=\"{width:.1}\" height=\"{BAR}\"/>",
                    kind(lane.paint),
                    phase(*level),
                ));
            }
        }
        let middle = bar + BAR / 2.0;
        if end <= self.scale.span {
            drawn.push_str(&mark(lane.end, self.x(end), middle));
        } else {
            drawn.push_str(&mark(LaneEnd::UnderWay, WIDTH - MARGIN, middle));
        }
        drawn.push('\n');
        drawn
    }
}

/// Draws the mark of an end around this point.
fn mark(end: LaneEnd, x: f64, y: f64) -> String {
    let class = outcome(end);
    let shape = match end {
        LaneEnd::Won => {
            "<circle r=\"9\"/><path class=\"check\" d=\"M-4 0l3 3 5-6\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2\"/>"
        }
        LaneEnd::TookOver => "<path d=\"M-9 7L0-9L9 7Z\"/>",
        LaneEnd::Ready => "<circle r=\"6\"/>",
        LaneEnd::Failed => "<path d=\"M-6-6L6 6M6-6L-6 6\" fill=\"none\" stroke-width=\"3\"/>",
        LaneEnd::Closed => "<circle class=\"paper\" r=\"6\" stroke-width=\"2\"/>",
        LaneEnd::UnderWay => "<path d=\"M0-7L9 0L0 7Z\"/>",
    };
    format!("<g class=\"{class}\" transform=\"translate({x:.1} {y:.1})\">{shape}</g>")
}

/// Draws what shades and marks mean, from this height on; returns its own height.
fn legend(top: f64) -> (String, f64) {
    let shade = |phase: &'static str| {
        (
            format!(
                "<rect class=\"stream {phase}\" x=\"-9\" y=\"-7\" width=\"18\" height=\"{BAR}\"/>"
            ),
            phase,
        )
    };
    let ends = [
        (LaneEnd::Won, "won"),
        (LaneEnd::TookOver, "took over"),
        (LaneEnd::Failed, "failed"),
        (LaneEnd::Closed, "not needed"),
    ];
    let marks = ends.into_iter().map(|(end, meaning)| (mark(end, 0.0, 0.0), meaning));
    let (mut drawn, mut x, mut row) = (String::new(), MARGIN, 0.0);
    for (sample, meaning) in PHASES.into_iter().map(shade).chain(marks) {
        let width = 26.0 + meaning.len() as f64 * LETTER + 16.0;
        if x + width > WIDTH {
            (x, row) = (MARGIN, row + 1.0);
        }
        let y = top + LEGEND * (row + 0.5);
        drawn.push_str(&format!(
            "<g transform=\"translate({:.1} {y})\">{sample}<text class=\"dim\" x=\"15\" y=\"5\" \
             font-size=\"13\">{meaning}</text></g>\n",
            x + 9.0,
        ));
        x += width;
    }
    (drawn, LEGEND * (row + 1.0))
}

const fn kind(paint: Paint) -> &'static str {
    match paint {
        Paint::Quic => "quic",
        Paint::Stream => "stream",
        _ => "other",
    }
}

const fn phase(level: EvidenceLevel) -> &'static str {
    let index = match level {
        EvidenceLevel::Started => 0,
        EvidenceLevel::Answered => 1,
        EvidenceLevel::Transport => 2,
        EvidenceLevel::Security | EvidenceLevel::FirstByte | EvidenceLevel::FullPacket => 3,
    };
    PHASES[index]
}

const fn outcome(end: LaneEnd) -> &'static str {
    match end {
        LaneEnd::Won | LaneEnd::TookOver => "good",
        LaneEnd::Failed => "bad",
        LaneEnd::Ready | LaneEnd::Closed | LaneEnd::UnderWay => "quiet",
    }
}

/// Returns a text that comes from a trace as markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write them.
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
