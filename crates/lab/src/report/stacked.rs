//! Bars that are made of parts: one for each place of the axis, and a panel for each scene.

use super::chart::COLOURS;
use super::frame::PictureFrame;
use super::markup::{escape, number};
use super::scale::step;
use crate::plan::FigurePart;
use crate::results::ResultsDocument;
use crate::situation::NamedLabel;

/// The height that the names of the panels take above the axis, as a fraction of it.
const HEADROOM: f64 = 0.08;

/// The bars of one scene.
#[derive(Clone, Debug)]
pub(super) struct ScenePanel {
    label: String,
    bars: Vec<StackedBar>,
}

#[derive(Clone, Debug)]
struct StackedBar {
    label: String,
    /// The lengths of its parts, from the bottom to the top.
    parts: Vec<f64>,
}

/// Returns a panel for each scene and curve, whose bars have all of these parts.
pub(super) fn panels(
    document: &ResultsDocument,
    scenes: &[&NamedLabel],
    curves: &[&NamedLabel],
    parts: &[FigurePart],
) -> Vec<ScenePanel> {
    let bars = |scene: &NamedLabel, curve: &NamedLabel| {
        let points = document.points_of_curve(&scene.id, &curve.id);
        let bars = points.filter_map(|point| {
            let part = |part: &FigurePart| Some(point.measures.get(&part.measure)?.value);
            let parts: Vec<f64> = parts.iter().map(part).collect::<Option<_>>()?;
            let is_measured = parts.iter().all(|part| part.is_finite());
            is_measured.then(|| StackedBar { label: number(point.x), parts })
        });
        bars.collect()
    };
    let panel = |scene: &NamedLabel, curve: &NamedLabel| ScenePanel {
        label: match curves.len() {
            1 => scene.label.clone(),
            _ => format!("{}: {}", scene.label, curve.label),
        },
        bars: bars(scene, curve),
    };
    let panels =
        scenes.iter().flat_map(|scene| curves.iter().map(move |curve| panel(scene, curve)));
    panels.filter(|panel| !panel.bars.is_empty()).collect()
}

/// Draws panels as SVG, side by side on one scale.
pub(super) fn draw(
    panels: &[ScenePanel],
    x_label: &str,
    y_label: &str,
    size: (u32, u32),
) -> String {
    let bars = || panels.iter().flat_map(|panel| &panel.bars);
    let highest = bars().map(|bar| bar.parts.iter().sum()).fold(f64::MIN_POSITIVE, f64::max);
    let step = step(highest);
    let top_value = (highest / step).ceil().max(1.0) * step;
    let mut frame = PictureFrame::new(size, y_label);
    let (bottom, height) = (frame.bottom(), frame.axis_height() * (1.0 - HEADROOM));
    for line in 0..=(top_value / step).round() as u32 {
        let value = f64::from(line) * step;
        frame.line(value, bottom - height * value / top_value);
    }
    // Half a bar's width is left free on either side of each panel.
    let slot = frame.axis_width() / (bars().count() + panels.len()).max(1) as f64;
    let mut begin = PictureFrame::LEFT;
    for panel in panels {
        let end = begin + slot * (panel.bars.len() + 1) as f64;
        frame.push(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            f64::midpoint(begin, end),
            bottom - height - 6.0,
            escape(&panel.label),
        ));
        for (bar, rank) in panel.bars.iter().zip(1_u32..) {
            let middle = begin + slot * f64::from(rank);
            frame.push(&bar_svg(bar, middle, slot, (bottom, height / top_value)));
            frame.draw_label(&bar.label, middle);
        }
        begin = end;
    }
    frame.end(x_label)
}

fn bar_svg(bar: &StackedBar, middle: f64, slot: f64, (bottom, scale): (f64, f64)) -> String {
    let width = slot * 0.7;
    let mut top = bottom;
    let parts = bar.parts.iter().enumerate().map(|(rank, part)| {
        let height = part.max(0.0) * scale;
        top -= height;
        format!(
            "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"var(--c{})\"/>\n",
            middle - width / 2.0,
            rank % COLOURS,
        )
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_on_each_other_and_panels_beside_each_other() {
        let bar = |label: &str, parts: [f64; 2]| StackedBar {
            label: label.to_owned(),
            parts: parts.to_vec(),
        };
        let plain = ScenePanel {
            label: "plain < TLS".to_owned(),
            bars: vec![bar("100", [10.0, 5.0]), bar("400", [40.0, 20.0])],
        };
        let tls = ScenePanel { label: "TLS".to_owned(), bars: vec![bar("100", [80.0, 20.0])] };
        let svg = draw(&[plain, tls], "rate", "CPU", (760, 400));
        assert_eq!((svg.matches("<rect").count(), svg.matches(">100<").count()), (6, 3), "{svg}");
        assert!(svg.contains(">plain &lt; TLS<") && svg.contains(">TLS<"), "{svg}");
        let attribute = |rect: &str, name: &str| -> f64 {
            let (_, rest) = rect.split_once(&format!(" {name}=\"")).expect("an attribute");
            rest.split_once('"').expect("its end").0.parse().expect("a number")
        };
        let rects: Vec<&str> = svg.lines().filter(|line| line.starts_with("<rect")).collect();
        for pair in rects.chunks(2) {
            let [lower, upper] = pair else { panic!("two parts") };
            let end = attribute(upper, "y") + attribute(upper, "height");
            assert!((end - attribute(lower, "y")).abs() < 0.11, "{pair:?}");
        }
        let heights = [0, 2, 4].map(|at| attribute(rects[at], "height"));
        assert!((heights[1] / heights[0] - 4.0).abs() < 0.05, "{heights:?}");
        assert!((heights[2] / heights[0] - 8.0).abs() < 0.05, "{heights:?}");
        assert!(!draw(&[], "x", "y", (100, 100)).contains("NaN"));
    }
}
