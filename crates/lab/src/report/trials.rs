//! Pictures of single trials: box plots and distributions.

use super::chart::{self, ChartLine, ChartPoint, DashPattern, PointMarker};
use super::frame::PictureFrame;
use super::scale;
use crate::measure::Measure;
use crate::results::{PointRow, ResultsDocument};
use crate::situation::NamedLabel;

/// The percentiles that a box shows: whiskers, box, median.
const BOX: [usize; 5] = [10, 25, 50, 75, 90];
/// The indices of the median and of the whiskers.
pub(super) const MEDIAN: usize = 2;
pub(super) const WHISKERS: [usize; 2] = [0, 4];

/// The box of one point.
#[derive(Clone, Debug)]
pub(super) struct BoxPlot {
    /// The label below it.
    pub(super) label: String,
    pub(super) colour: usize,
    /// The 10th, 25th, 50th, 75th and 90th percentiles.
    pub(super) percentiles: [f64; 5],
    pub(super) most: f64,
}

/// Returns the boxes of the figure, in the order of places.
pub(super) fn boxes(
    document: &ResultsDocument,
    scenes: &[&NamedLabel],
    curves: &[&NamedLabel],
    measure: &Measure,
) -> Vec<BoxPlot> {
    let mut places: Vec<f64> = document.points.iter().map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut boxes = Vec::new();
    for place in places {
        for scene in scenes {
            for (colour, curve) in curves.iter().enumerate() {
                let mut points = document.points_of_curve(&scene.id, &curve.id);
                let Some(point) = points.find(|point| point.x == place) else { continue };
                let Some(all) = percentiles(point, measure) else { continue };
                boxes.push(BoxPlot {
                    label: super::number(place),
                    colour,
                    percentiles: BOX.map(|percent| all[percent]),
                    most: all[100],
                });
            }
        }
    }
    boxes
}

/// Returns, for each point at this place, a line through its percentiles.
pub(super) fn distributions(
    document: &ResultsDocument,
    scenes: &[&NamedLabel],
    curves: &[&NamedLabel],
    measure: &Measure,
    place: Option<f64>,
) -> Vec<ChartLine> {
    let mut lines = Vec::new();
    for (rank, scene) in scenes.iter().enumerate() {
        for (colour, curve) in curves.iter().enumerate() {
            let points = document.points_of_curve(&scene.id, &curve.id);
            for point in points.filter(|point| place.is_none_or(|place| point.x == place)) {
                let Some(all) = percentiles(point, measure) else { continue };
                let places = all.iter().enumerate().map(|(percent, x)| ChartPoint {
                    // A logarithmic axis has no zero.
                    x: x.max(LEAST).log10(),
                    y: percent as f64,
                    bar: None,
                });
                lines.push(ChartLine {
                    label: curve.label.clone(),
                    colour: colour % chart::COLOURS,
                    dash: DashPattern::from_rank(rank),
                    marker: PointMarker::None,
                    places: places.collect(),
                });
            }
        }
    }
    lines
}

/// The minimum of a logarithmic axis.
const LEAST: f64 = 0.1;

fn percentiles<'a>(point: &'a PointRow, measure: &Measure) -> Option<&'a Vec<f64>> {
    let Measure::Column(_, column) = measure else { return None };
    point.percentiles.get(column).filter(|all| all.len() == 101)
}

/// Draws boxes side by side as SVG.
pub(super) fn draw_boxes(
    boxes: &[BoxPlot],
    x_label: &str,
    y_label: &str,
    size: (u32, u32),
) -> String {
    let highest = boxes.iter().map(|plot| plot.most).fold(LEAST, f64::max).log10();
    let lowest = boxes.iter().map(|plot| plot.percentiles[0]).fold(f64::MAX, f64::min);
    let lowest = lowest.max(LEAST).log10().floor();
    let mut frame = PictureFrame::new(size, y_label);
    let (bottom, axis_height) = (frame.bottom(), frame.axis_height());
    let step = frame.axis_width() / boxes.len().max(1) as f64;
    let scale = axis_height / (highest * 1.02 - lowest).max(0.1);
    let at = |value: f64| bottom - (value.max(LEAST).log10() - lowest).max(0.0) * scale;
    for value in scale::decades(lowest, highest) {
        frame.line(value, at(value));
    }
    let mut labelled = String::new();
    for (rank, plot) in boxes.iter().enumerate() {
        let middle = PictureFrame::LEFT + step * (rank as f64 + 0.5);
        let half = (step * 0.32).min(16.0);
        frame.push(&box_svg(plot, middle, half, &at));
        // One label for the boxes of one place.
        if plot.label != labelled {
            let same = boxes[rank..].iter().take_while(|other| other.label == plot.label).count();
            frame.draw_label(
                &plot.label,
                PictureFrame::LEFT + step * (rank as f64 + same as f64 / 2.0),
            );
            labelled.clone_from(&plot.label);
        }
    }
    frame.end(x_label)
}

fn box_svg(plot: &BoxPlot, middle: f64, half: f64, at: &dyn Fn(f64) -> f64) -> String {
    let [low, first, median, third, high] = plot.percentiles.map(at);
    let (left, width, colour) = (middle - half, half * 2.0, plot.colour % chart::COLOURS);
    format!(
        "<g stroke=\"var(--c{colour})\" stroke-width=\"1.5\"><path d=\"M{middle:.1} {low:.1}V{high:.1}\"/>\
         <rect x=\"{left:.1}\" y=\"{third:.1}\" width=\"{width:.1}\" height=\"{:.1}\" \
         fill=\"var(--paper)\"/><path d=\"M{left:.1} {median:.1}h{width:.1}\" stroke-width=\"3\"/>\
         <circle cx=\"{middle:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"var(--c{colour})\"/></g>\n",
        (first - third).max(1.0),
        at(plot.most),
    )
}
