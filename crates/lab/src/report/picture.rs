//! A figure of the plan: its lines and their legend.

use super::bars;
use super::chart::{
    self, AxisLabels, AxisScale, COLOURS, ChartLine, ChartPoint, DashPattern, PointMarker,
};
use super::markup::{escape, number};
use super::{medians, stacked, trials};
use crate::measure::Measure;
use crate::plan::{FigureDrawing, PlanFigure};
use crate::results::ResultsDocument;
use crate::situation::{GridAxis, NamedLabel};

/// Width and height of a picture for a page, and of one for a phone.
const WIDE: (u32, u32) = (760, 400);
const NARROW: (u32, u32) = (360, 320);
/// How many curves with published values have an entry of their own for these.
const PUBLISHED_ENTRIES: usize = 2;

pub(super) fn section(document: &ResultsDocument, figure: &PlanFigure) -> String {
    let html = |drawn: &FinishedPicture| {
        let keys: String = drawn.legend.iter().map(key).collect();
        let legend = match keys.is_empty() {
            true => keys,
            false => format!("<ul class=\"legend\">\n{keys}</ul>\n"),
        };
        figure_html(figure, &drawn.title, &drawn.wide, &drawn.narrow, &legend)
    };
    pictures(document, figure).iter().map(html).collect()
}

/// A figure of the plan, or a part of it: what it is drawn from.
#[derive(Clone, Copy)]
struct DrawnPart<'a> {
    document: &'a ResultsDocument,
    figure: &'a PlanFigure,
    scenes: &'a [&'a NamedLabel],
    /// The only place that is drawn, if it shows distributions.
    place: Option<f64>,
}

/// A picture.
#[derive(Clone, Debug)]
pub(super) struct FinishedPicture {
    pub(super) title: String,
    pub(super) wide: String,
    narrow: String,
    /// The lines of the legend; empty if the names are in the picture.
    pub(super) legend: Vec<ChartLine>,
}

#[cfg(test)]
impl FinishedPicture {
    /// Returns a picture with one line in its legend.
    pub(super) fn sample(title: &str, svg: &str, label: &str) -> Self {
        let (dash, marker) = (DashPattern::Solid, PointMarker::Disc);
        let line =
            ChartLine { label: label.to_owned(), colour: 0, dash, marker, places: Vec::new() };
        let (title, wide, narrow) = (title.to_owned(), svg.to_owned(), svg.to_owned());
        Self { title, wide, narrow, legend: vec![line] }
    }
}

/// Returns the pictures of a figure: one for all places of the axis, or one for each place if it
/// shows distributions, and of each scene if it is drawn so.
pub(super) fn pictures(document: &ResultsDocument, figure: &PlanFigure) -> Vec<FinishedPicture> {
    let scenes = chosen(&document.scenes, &figure.scenes);
    if !figure.each_scene {
        return of_scenes(document, figure, &scenes, &figure.title);
    }
    let of_scene = |scene: &&NamedLabel| {
        let title = format!("{}: {}", figure.title, scene.label);
        of_scenes(document, figure, &[scene], &title)
    };
    scenes.iter().flat_map(of_scene).collect()
}

fn of_scenes(
    document: &ResultsDocument,
    figure: &PlanFigure,
    scenes: &[&NamedLabel],
    title: &str,
) -> Vec<FinishedPicture> {
    let part = DrawnPart { document, figure, scenes, place: None };
    if figure.drawing != FigureDrawing::Distribution {
        return part.draw(title).into_iter().collect();
    }
    let mut places: Vec<f64> = document.points.iter().map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let picture = |place: f64| {
        let title = format!("{title}, {} {}", number(place), document.axis.unit);
        DrawnPart { place: Some(place), ..part }.draw(&title)
    };
    places.into_iter().filter_map(picture).collect()
}

fn chosen<'a>(all: &'a [NamedLabel], wanted: &[String]) -> Vec<&'a NamedLabel> {
    all.iter().filter(|named| wanted.is_empty() || wanted.contains(&named.id)).collect()
}

impl DrawnPart<'_> {
    /// Draws it; `None` if there is nothing to draw.
    fn draw(self, title: &str) -> Option<FinishedPicture> {
        let Self { document, figure, scenes, place } = self;
        let x_label = axis_label(&document.axis);
        let y_label = figure.label.clone().unwrap_or_else(|| figure.measure.label());
        let curves = chosen(&document.curves, &figure.curves);
        let drawn = |legend: Vec<ChartLine>, [wide, narrow]: [String; 2]| FinishedPicture {
            title: title.to_owned(),
            wide,
            narrow,
            legend,
        };
        match figure.drawing {
            FigureDrawing::Lines | FigureDrawing::Distribution => {
                let (lines, x, scale, y) = match figure.drawing {
                    FigureDrawing::Lines => {
                        let lines = lines(document, figure, scenes);
                        (lines, x_label.as_str(), AxisScale::Linear, y_label.as_str())
                    }
                    _ => {
                        let (measure, all) = (&figure.measure, "trials [%]");
                        let lines =
                            trials::distributions(document, scenes, &curves, measure, place);
                        (lines, y_label.as_str(), AxisScale::Decades, all)
                    }
                };
                // An axis without places has no range.
                (!lines.is_empty()).then(|| {
                    let labels = AxisLabels { x, scale, y };
                    let pictures = [WIDE, NARROW].map(|size| chart::draw(&lines, labels, size));
                    drawn(without_repetition(lines), pictures)
                })
            }
            FigureDrawing::Boxes | FigureDrawing::Medians => {
                let boxes = trials::boxes(document, scenes, &curves, &figure.measure);
                let legend = legend_of_boxes(&boxes, &curves);
                let pictures = [WIDE, NARROW].map(|size| match figure.drawing {
                    FigureDrawing::Medians => medians::draw(&boxes, &x_label, &y_label, size),
                    _ => trials::draw_boxes(&boxes, &x_label, &y_label, size),
                });
                (!legend.is_empty()).then(|| drawn(legend, pictures))
            }
            FigureDrawing::Stacked => {
                let panels = stacked::panels(document, scenes, &curves, &figure.parts);
                let pictures =
                    [WIDE, NARROW].map(|size| stacked::draw(&panels, &x_label, &y_label, size));
                // From the top to the bottom, as the parts stand.
                let legend = figure.parts.iter().enumerate().rev();
                let legend = legend.map(|(rank, part)| plain_entry(&part.label, rank)).collect();
                (!panels.is_empty()).then(|| drawn(legend, pictures))
            }
            FigureDrawing::Bars => {
                let groups = bars::groups(document, scenes, &curves, &figure.measure);
                let pictures = [WIDE, NARROW].map(|size| bars::draw(&groups, &y_label, size.0));
                (!groups.is_empty()).then(|| drawn(Vec::new(), pictures))
            }
        }
    }
}

/// Returns the legend of these lines: if many have published values, one entry stands for all.
fn without_repetition(mut lines: Vec<ChartLine>) -> Vec<ChartLine> {
    let is_published = |line: &ChartLine| line.marker == PointMarker::Cross;
    if lines.iter().filter(|line| is_published(line)).count() <= PUBLISHED_ENTRIES {
        return lines;
    }
    let mut seen = false;
    lines.retain(|line| !is_published(line) || !std::mem::replace(&mut seen, true));
    for line in lines.iter_mut().filter(|line| is_published(line)) {
        "published, in the same colour".clone_into(&mut line.label);
    }
    lines
}

/// Returns the legend of the curves that have boxes.
fn legend_of_boxes(boxes: &[trials::BoxPlot], curves: &[&NamedLabel]) -> Vec<ChartLine> {
    let is_shown = |colour: usize| boxes.iter().any(|box_plot| box_plot.colour == colour);
    let shown = curves.iter().enumerate().filter(|(colour, _)| is_shown(*colour));
    shown.map(|(colour, curve)| plain_entry(&curve.label, colour)).collect()
}

/// Returns the entry of a legend for an area of this color.
fn plain_entry(label: &str, colour: usize) -> ChartLine {
    let (dash, marker) = (DashPattern::Solid, PointMarker::None);
    ChartLine {
        label: label.to_owned(),
        colour: colour % COLOURS,
        dash,
        marker,
        places: Vec::new(),
    }
}

/// Returns both pictures; the page shows the one that fits.
fn figure_html(figure: &PlanFigure, title: &str, wide: &str, narrow: &str, legend: &str) -> String {
    let classed = |class: &str, picture: &str| {
        picture.replacen("<svg ", &format!("<svg class=\"{class}\" role=\"img\" "), 1)
    };
    format!(
        "<figure>\n<h3>{title}</h3>\n{wide}{narrow}{legend}<figcaption>{caption}</figcaption>\n</figure>\n",
        title = escape(title),
        wide = classed("wide", wide),
        narrow = classed("narrow", narrow),
        caption = escape(&figure.caption),
    )
}

/// Returns the label of the axis with its unit.
pub(super) fn axis_label(axis: &GridAxis) -> String {
    match axis.unit.is_empty() {
        true => axis.label.clone(),
        false => format!("{} [{}]", axis.label, axis.unit),
    }
}

/// Returns the lines of a figure. With several scenes the colour identifies the scene and the dash
/// pattern the curve; with one scene, both identify the curve.
fn lines(
    document: &ResultsDocument,
    figure: &PlanFigure,
    scenes: &[&NamedLabel],
) -> Vec<ChartLine> {
    let curves = chosen(&document.curves, &figure.curves);
    let mut lines = Vec::new();
    for (scene_rank, scene) in scenes.iter().enumerate() {
        for (curve_rank, curve) in curves.iter().enumerate() {
            let places = places(document, &scene.id, &curve.id, &figure.measure);
            if places.is_empty() {
                continue;
            }
            let several = scenes.len() > 1;
            let label = match (several, curves.len() > 1) {
                (true, true) => format!("{}, {}", curve.label, scene.label),
                (true, false) => scene.label.clone(),
                _ => curve.label.clone(),
            };
            let colour = if several { scene_rank } else { curve_rank } % COLOURS;
            let published = published(document, (&scene.id, &curve.id), &figure.measure);
            if !published.is_empty() {
                lines.push(ChartLine {
                    label: format!("{label}: published"),
                    colour,
                    dash: DashPattern::Fine,
                    marker: PointMarker::Cross,
                    places: published,
                });
            }
            lines.push(ChartLine {
                label,
                colour,
                dash: DashPattern::from_rank(curve_rank),
                marker: PointMarker::from_rank(curve_rank),
                places,
            });
        }
        if figure.bound && !curves.is_empty() {
            lines.push(bound(document, scene, scenes.len() > 1));
        }
    }
    lines
}

/// Returns the bound of a scene: the highest one of its curves.
fn bound(document: &ResultsDocument, scene: &NamedLabel, named: bool) -> ChartLine {
    let mut places: Vec<ChartPoint> = Vec::new();
    for point in document.points.iter().filter(|point| point.scene == scene.id) {
        let Some(summary) = point.measures.get(&Measure::Bound) else { continue };
        match places.iter_mut().find(|place| place.x == point.x) {
            Some(place) => place.y = place.y.max(summary.value),
            None => places.push(ChartPoint { x: point.x, y: summary.value, bar: None }),
        }
    }
    places.sort_by(|left, right| left.x.total_cmp(&right.x));
    let label = if named { format!("bound, {}", scene.label) } else { "bound".to_owned() };
    ChartLine {
        label,
        colour: COLOURS - 1,
        dash: DashPattern::Dotted,
        marker: PointMarker::None,
        places,
    }
}

fn places(
    document: &ResultsDocument,
    scene: &str,
    curve: &str,
    measure: &Measure,
) -> Vec<ChartPoint> {
    let points = document.points_of_curve(scene, curve);
    points
        .filter_map(|point| {
            // A value that no run measured has no place.
            let summary =
                point.measures.get(measure).filter(|summary| summary.value.is_finite())?;
            let bar = summary.interval.map(|interval| (interval.low, interval.high));
            Some(ChartPoint { x: point.x, y: summary.value, bar })
        })
        .collect()
}

/// Returns the values of a curve in the publication's tables.
fn published(
    document: &ResultsDocument,
    (scene, curve): (&str, &str),
    measure: &Measure,
) -> Vec<ChartPoint> {
    let of_curve =
        document.tables.iter().filter(|table| table.scene == scene && table.curve == curve);
    of_curve
        .filter_map(|table| {
            Some((table, table.measures.iter().position(|shown| shown == measure)?))
        })
        .flat_map(|(table, column)| {
            table.row.iter().filter_map(move |row| {
                Some(ChartPoint { x: row.x, y: *row.published.get(column)?, bar: None })
            })
        })
        .collect()
}

/// Returns an entry of the legend.
fn key(line: &ChartLine) -> String {
    format!(
        "<li><svg viewBox=\"0 0 44 14\" width=\"44\" height=\"14\" aria-hidden=\"true\">\
         <g stroke=\"var(--c{colour})\" fill=\"none\" stroke-width=\"2\">\
         <path d=\"M1 7H43\" stroke-dasharray=\"{dashes}\"/>{marker}</g></svg>{label}</li>\n",
        colour = line.colour,
        dashes = line.dash.css(),
        marker = line.marker.svg(22, 7, line.colour),
        label = escape(&line.label),
    )
}
