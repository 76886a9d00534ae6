//! Bars: for each scene a group, in it one bar for each curve, with its name and its number.

use super::chart::COLOURS;
use super::markup::{escape, number};
use crate::measure::Measure;
use crate::plan::Named;
use crate::results::Document;
use crate::statistics::Summary;

/// Of a bar with the space below it, and of the heading of a group, in the units of the picture.
const ROW: f64 = 24.0;
const HEADING: f64 = 34.0;
/// What stands below the bars: the axis and its label.
const FOOT: f64 = 46.0;
/// Room for the names of curves, as a part of the width, and for numbers behind the bars.
const NAMES: f64 = 0.36;
const NUMBERS: f64 = 92.0;
/// Letters of a name, in the units of the picture.
const LETTER: f64 = 7.0;

/// The bars of one scene.
#[derive(Clone, Debug)]
pub(super) struct Group {
    label: String,
    bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
struct Bar {
    label: String,
    colour: usize,
    summary: Summary,
}

/// The groups of a figure. Of a curve with several places, the first one is shown.
pub(super) fn groups(
    document: &Document,
    scenes: &[&Named],
    curves: &[&Named],
    measure: &Measure,
) -> Vec<Group> {
    let bar = |scene: &Named, (colour, curve): (usize, &&Named)| {
        let point = document.along(&scene.id, &curve.id).next()?;
        let summary = *point.measures.get(measure)?;
        let finite = summary.mean.is_finite();
        finite.then(|| Bar { label: curve.label.clone(), colour: colour % COLOURS, summary })
    };
    let group = |scene: &&Named| Group {
        label: scene.label.clone(),
        bars: curves.iter().enumerate().filter_map(|curve| bar(scene, curve)).collect(),
    };
    scenes.iter().map(group).filter(|group| !group.bars.is_empty()).collect()
}

/// Bars as SVG of this width, as high as they need.
pub(super) fn draw(groups: &[Group], label: &str, width: u32) -> String {
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let bottom = rows as f64 * ROW + groups.len() as f64 * HEADING;
    let (left, right) = (f64::from(width) * NAMES, f64::from(width) - NUMBERS);
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let most = bars()
        .map(|bar| bar.summary.mean + bar.summary.ci95.unwrap_or(0.0))
        .fold(f64::MIN_POSITIVE, f64::max);
    let scale = (right - left) / most;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {:.0}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"var(--ink)\">\n",
        bottom + FOOT,
    );
    let step = step(most);
    let mut tick = 0.0;
    while tick <= most * 1.000_001 {
        let x = left + tick * scale;
        svg.push_str(&format!(
            "<path d=\"M{x:.1} 4V{bottom:.1}\" stroke=\"var(--faint)\"/><text x=\"{x:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            bottom + 18.0,
            number(tick),
        ));
        tick += step;
    }
    let mut y = 0.0;
    for group in groups {
        svg.push_str(&format!(
            "<text x=\"4\" y=\"{:.1}\" font-weight=\"bold\">{}</text>\n",
            y + HEADING - 10.0,
            escape(&group.label),
        ));
        y += HEADING;
        let end = y + group.bars.len() as f64 * ROW;
        svg.push_str(&format!("<path d=\"M{left:.1} {y:.1}V{end:.1}\" stroke=\"var(--ink)\"/>\n"));
        for bar in &group.bars {
            svg.push_str(&one(bar, y, (left, scale)));
            y += ROW;
        }
    }
    svg.push_str(&format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
        f64::from(width) / 2.0,
        bottom + 38.0,
        escape(label),
    ));
    svg
}

fn one(bar: &Bar, y: f64, (left, scale): (f64, f64)) -> String {
    let length = (bar.summary.mean * scale).max(0.0);
    let error = bar.summary.ci95.unwrap_or(0.0) * scale;
    let (middle, end) = (y + ROW / 2.0, left + length);
    let room = (left / LETTER) as usize;
    let name = match bar.label.chars().count() > room {
        true => bar.label.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
        false => bar.label.clone(),
    };
    format!(
        "<g><title>{label}</title><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{length:.1}\" \
         height=\"{:.1}\" fill=\"var(--c{})\"/><path d=\"M{:.1} {middle:.1}H{:.1}\" \
         stroke=\"var(--ink)\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>\n",
        y + 3.0,
        ROW - 6.0,
        bar.colour,
        (end - error).max(left),
        end + error,
        left - 6.0,
        middle + 4.5,
        escape(&name),
        end + error + 6.0,
        middle + 4.5,
        number(bar.summary.mean),
        label = escape(&bar.label),
    )
}

/// Between two lines of an axis from 0 to this: 1, 2 or 5 times a power of ten, five lines or so.
pub(super) fn step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 5.0).log10().floor());
    let wanted = most / 5.0 / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|step| wanted <= *step).unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!([step(100.0), step(96.0), step(7.0), step(34.0)], [20.0, 20.0, 2.0, 10.0]);
    }

    #[test]
    fn every_bar_has_its_name_and_its_number() {
        let summary = Summary::of(&[9.0, 11.0]).unwrap();
        let bar = Bar { label: "a < b".to_owned(), colour: 1, summary };
        let svg = draw(&[Group { label: "near".to_owned(), bars: vec![bar] }], "Mbit/s", 760);
        for wanted in ["a &lt; b", ">near<", ">10<", "var(--c1)", ">Mbit/s<"] {
            assert!(svg.contains(wanted), "{wanted}: {svg}");
        }
    }
}
