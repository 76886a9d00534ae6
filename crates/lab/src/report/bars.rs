//! Bars: a group for each scene, with one bar for each curve, its name and its number. If there is
//! no room for the names beside the bars, they are above them.

use super::chart::COLOURS;
use super::markup::{escape, estimate, number};
use super::scale::step;
use crate::measure::Measure;
use crate::results::ResultsDocument;
use crate::situation::NamedLabel;
use crate::statistics::SampleSummary;

/// The heights of a bar with the space below it, of a name above its bar, and of the heading of a
/// group, in units of the picture.
const ROW: f64 = 24.0;
const NAME: f64 = 17.0;
const HEADING: f64 = 34.0;
/// The height below the bars, for the axis and its label.
const FOOT: f64 = 46.0;
/// The maximum width of the names of curves beside the bars, as a fraction of the picture's width.
const NAMES: f64 = 0.36;
/// The margin that stays free of names and numbers.
const MARGIN: f64 = 8.0;
/// The width of a letter of a name, in units of the picture.
const LETTER: f64 = 7.2;

/// The bars of one scene.
#[derive(Clone, Debug)]
pub(super) struct SceneBars {
    label: String,
    bars: Vec<LabelledBar>,
}

#[derive(Clone, Debug)]
struct LabelledBar {
    label: String,
    colour: usize,
    summary: SampleSummary,
    /// The text behind the bar.
    text: String,
}

/// The layout of the bars of a picture.
#[derive(Clone, Copy, Debug)]
struct BarLayout {
    left: f64,
    /// Units of the picture per unit of the measure.
    scale: f64,
    /// Whether names are above their bars, because there is no room beside them.
    above: bool,
}

impl BarLayout {
    fn row(self) -> f64 {
        if self.above { ROW + NAME } else { ROW }
    }
}

fn length(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Returns the groups of a figure. Of a curve with several places, the first one is shown.
pub(super) fn groups(
    document: &ResultsDocument,
    scenes: &[&NamedLabel],
    curves: &[&NamedLabel],
    measure: &Measure,
) -> Vec<SceneBars> {
    let bar = |scene: &NamedLabel, (colour, curve): (usize, &&NamedLabel)| {
        let point = document.points_of_curve(&scene.id, &curve.id).next()?;
        let summary = *point.measures.get(measure)?;
        let text = estimate(summary.value, summary.interval, &measure.unit());
        let finite = summary.value.is_finite();
        finite.then(|| LabelledBar {
            label: curve.label.clone(),
            colour: colour % COLOURS,
            summary,
            text,
        })
    };
    let group = |scene: &&NamedLabel| SceneBars {
        label: scene.label.clone(),
        bars: curves.iter().enumerate().filter_map(|curve| bar(scene, curve)).collect(),
    };
    scenes.iter().map(group).filter(|group| !group.bars.is_empty()).collect()
}

/// Draws bars as SVG of this width, as high as necessary.
pub(super) fn draw(groups: &[SceneBars], label: &str, width: u32) -> String {
    let width = f64::from(width);
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let longest =
        |text: fn(&LabelledBar) -> &str| bars().map(|bar| length(text(bar))).fold(0.0, f64::max);
    let names = longest(|bar| &bar.label) + 2.0 * MARGIN;
    let above = names > width * NAMES;
    let left = if above { MARGIN } else { names };
    let right = width - longest(|bar| &bar.text) - 2.0 * MARGIN;
    let max = bars().map(|bar| ends(bar).1).fold(f64::MIN_POSITIVE, f64::max);
    let layout = BarLayout { left, scale: (right - left).max(MARGIN) / max, above };
    let bottom = bars().count() as f64 * layout.row() + groups.len() as f64 * HEADING;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {:.0}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"var(--ink)\">\n",
        bottom + FOOT,
    );
    svg.push_str(&grid_lines(layout, max, bottom));
    let mut y = 0.0;
    for group in groups {
        svg.push_str(&format!(
            "<text x=\"4\" y=\"{:.1}\" font-weight=\"bold\">{}</text>\n",
            y + HEADING - 10.0,
            escape(&group.label),
        ));
        y += HEADING;
        let end = y + group.bars.len() as f64 * layout.row();
        svg.push_str(&format!("<path d=\"M{left:.1} {y:.1}V{end:.1}\" stroke=\"var(--ink)\"/>\n"));
        for bar in &group.bars {
            svg.push_str(&bar_svg(bar, y, layout));
            y += layout.row();
        }
    }
    svg.push_str(&format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
        width / 2.0,
        bottom + 38.0,
        escape(label),
    ));
    svg
}

/// Draws the axis, with a grid line for each of its ticks.
fn grid_lines(layout: BarLayout, max: f64, bottom: f64) -> String {
    let ticks = (max / step(max) * 1.000_001) as u32;
    let line = |tick: u32| {
        let value = f64::from(tick) * step(max);
        let x = layout.left + value * layout.scale;
        format!(
            "<path d=\"M{x:.1} 4V{bottom:.1}\" stroke=\"var(--faint)\"/><text x=\"{x:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            bottom + 18.0,
            number(value),
        )
    };
    (0..=ticks).map(line).collect()
}

/// Returns the ends of the error bar, or twice the end of the bar.
fn ends(bar: &LabelledBar) -> (f64, f64) {
    let value = bar.summary.value;
    bar.summary.interval.map_or((value, value), |interval| (interval.low, interval.high))
}

fn bar_svg(bar: &LabelledBar, y: f64, BarLayout { left, scale, above }: BarLayout) -> String {
    let (low, high) = ends(bar);
    let at = |value: f64| left + value.max(0.0) * scale;
    let (end, low, high) = (at(bar.summary.value), at(low), at(high));
    let top = if above { y + NAME } else { y };
    let middle = top + ROW / 2.0;
    let (name_x, name_y, anchor) =
        if above { (left + 2.0, top - 1.0, "start") } else { (left - 6.0, middle + 4.5, "end") };
    format!(
        "<g><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
         fill=\"var(--c{})\"/><path d=\"M{low:.1} {middle:.1}H{high:.1}\" stroke=\"var(--ink)\"/>\
         <text x=\"{name_x:.1}\" y=\"{name_y:.1}\" text-anchor=\"{anchor}\">{}</text>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>\n",
        top + 3.0,
        end - left,
        ROW - 6.0,
        bar.colour,
        escape(&bar.label),
        high.max(end) + 6.0,
        middle + 4.5,
        escape(&bar.text),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_name_and_its_number() {
        let summary = SampleSummary::from_samples(&[9.0, 11.0]).unwrap();
        let text = "10 ± 1".to_owned();
        let bar = LabelledBar { label: "a < b".to_owned(), colour: 1, summary, text };
        let svg = draw(&[SceneBars { label: "near".to_owned(), bars: vec![bar] }], "Mbit/s", 760);
        for wanted in ["a &lt; b", ">near<", ">10 ± 1<", "var(--c1)", ">Mbit/s<"] {
            assert!(svg.contains(wanted), "{wanted}: {svg}");
        }
    }

    #[test]
    fn a_long_name_is_complete_at_any_width() {
        let name = "SCTP inside UDP, secured by DTLS, with everything remembered";
        let summary = SampleSummary::from_samples(&[10.0]).unwrap();
        let bar =
            LabelledBar { label: name.to_owned(), colour: 0, summary, text: "10 ms".to_owned() };
        for width in [360, 760] {
            let group = SceneBars { label: String::new(), bars: vec![bar.clone()] };
            let svg = draw(&[group], "ms", width);
            assert!(svg.contains(&format!("text-anchor=\"start\">{name}<")), "{width}: {svg}");
        }
    }
}
