//! A figure of the plan: its lines and their legend.

use super::bars;
use super::chart::{self, COLOURS, Dash, Labels, Line, Marker, Place, Scale};
use super::markup::{escape, number};
use super::{medians, trials};
use crate::measure::Measure;
use crate::plan::{Drawing, Figure};
use crate::results::Document;
use crate::situation::{Axis, Named};

/// Width and height of a picture for a page, and of one for a phone.
const WIDE: (u32, u32) = (760, 400);
const NARROW: (u32, u32) = (360, 320);

pub(super) fn section(document: &Document, figure: &Figure) -> String {
    let scenes = chosen(&document.scenes, &figure.scenes);
    match figure.each_scene {
        false => pictures(document, figure, &scenes, &figure.title),
        true => scenes
            .iter()
            .map(|scene| {
                let title = format!("{}: {}", figure.title, scene.label);
                pictures(document, figure, &[scene], &title)
            })
            .collect(),
    }
}

/// Returns one picture for all places of the axis, or one for each place if it shows
/// distributions.
fn pictures(document: &Document, figure: &Figure, scenes: &[&Named], title: &str) -> String {
    if figure.drawing != Drawing::Distribution {
        return picture(document, figure, scenes, title, None);
    }
    let mut places: Vec<f64> = document.points.iter().map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let picture = |place: &f64| {
        let title = format!("{title}, {} {}", number(*place), document.axis.unit);
        picture(document, figure, scenes, &title, Some(*place))
    };
    places.iter().map(picture).collect()
}

fn chosen<'a>(all: &'a [Named], wanted: &[String]) -> Vec<&'a Named> {
    all.iter().filter(|named| wanted.is_empty() || wanted.contains(&named.id)).collect()
}

fn picture(
    document: &Document,
    figure: &Figure,
    scenes: &[&Named],
    title: &str,
    place: Option<f64>,
) -> String {
    let x_label = axis_label(&document.axis);
    let y_label = figure.label.clone().unwrap_or_else(|| figure.measure.label());
    let curves = chosen(&document.curves, &figure.curves);
    let (legend, wide, narrow) = match figure.drawing {
        Drawing::Lines => {
            let lines = lines(document, figure, scenes);
            if lines.is_empty() {
                // An axis without places has no range.
                return String::new();
            }
            let labels = Labels { x: &x_label, scale: Scale::Linear, y: &y_label };
            let draw = |size| chart::draw(&lines, labels, size);
            let pictures = (draw(WIDE), draw(NARROW));
            (lines, pictures.0, pictures.1)
        }
        Drawing::Boxes | Drawing::Medians => {
            let boxes = trials::boxes(document, scenes, &curves, &figure.measure);
            let is_shown = |colour: usize| boxes.iter().any(|box_plot| box_plot.colour == colour);
            let shown = curves.iter().enumerate().filter(|(colour, _)| is_shown(*colour));
            let shown = shown.map(|(colour, curve)| Line {
                label: curve.label.clone(),
                colour: colour % COLOURS,
                dash: Dash::Solid,
                marker: Marker::None,
                places: Vec::new(),
            });
            let draw = |size| match figure.drawing {
                Drawing::Medians => medians::draw(&boxes, &x_label, &y_label, size),
                _ => trials::draw_boxes(&boxes, &x_label, &y_label, size),
            };
            (shown.collect(), draw(WIDE), draw(NARROW))
        }
        Drawing::Bars => {
            let groups = bars::groups(document, scenes, &curves, &figure.measure);
            let pictures = [WIDE, NARROW].map(|size| bars::draw(&groups, &y_label, size.0));
            let [wide, narrow] = pictures;
            return if groups.is_empty() {
                String::new()
            } else {
                figure_html(figure, title, &wide, &narrow, "")
            };
        }
        Drawing::Distribution => {
            let lines = trials::distributions(document, scenes, &curves, &figure.measure, place);
            let labels = Labels { x: &y_label, scale: Scale::Decades, y: "trials [%]" };
            let draw = |size| chart::draw(&lines, labels, size);
            let pictures = (draw(WIDE), draw(NARROW));
            (lines, pictures.0, pictures.1)
        }
    };
    if legend.is_empty() {
        return String::new();
    }
    let legend: String = legend.iter().map(key).collect();
    let legend = format!("<ul class=\"legend\">\n{legend}</ul>\n");
    figure_html(figure, title, &wide, &narrow, &legend)
}

/// Returns both pictures; the page shows the one that fits.
fn figure_html(figure: &Figure, title: &str, wide: &str, narrow: &str, legend: &str) -> String {
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
pub(super) fn axis_label(axis: &Axis) -> String {
    match axis.unit.is_empty() {
        true => axis.label.clone(),
        false => format!("{} [{}]", axis.label, axis.unit),
    }
}

/// Returns the lines of a figure. With several scenes the colour identifies the scene and the dash
/// pattern the curve; with one scene, both identify the curve.
fn lines(document: &Document, figure: &Figure, scenes: &[&Named]) -> Vec<Line> {
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
                lines.push(Line {
                    label: format!("{label}: published"),
                    colour,
                    dash: Dash::Fine,
                    marker: Marker::Cross,
                    places: published,
                });
            }
            lines.push(Line {
                label,
                colour,
                dash: Dash::of(curve_rank),
                marker: Marker::of(curve_rank),
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
fn bound(document: &Document, scene: &Named, named: bool) -> Line {
    let mut places: Vec<Place> = Vec::new();
    for point in document.points.iter().filter(|point| point.scene == scene.id) {
        let Some(summary) = point.measures.get(&Measure::Bound) else { continue };
        match places.iter_mut().find(|place| place.x == point.x) {
            Some(place) => place.y = place.y.max(summary.value),
            None => places.push(Place { x: point.x, y: summary.value, bar: None }),
        }
    }
    places.sort_by(|left, right| left.x.total_cmp(&right.x));
    let label = if named { format!("bound, {}", scene.label) } else { "bound".to_owned() };
    Line { label, colour: COLOURS - 1, dash: Dash::Dotted, marker: Marker::None, places }
}

fn places(document: &Document, scene: &str, curve: &str, measure: &Measure) -> Vec<Place> {
    let points = document.along(scene, curve);
    points
        .filter_map(|point| {
            // A value that no run measured has no place.
            let summary =
                point.measures.get(measure).filter(|summary| summary.value.is_finite())?;
            let bar = summary.interval.map(|interval| (interval.low, interval.high));
            Some(Place { x: point.x, y: summary.value, bar })
        })
        .collect()
}

/// Returns the values of a curve in the publication's tables.
fn published(document: &Document, (scene, curve): (&str, &str), measure: &Measure) -> Vec<Place> {
    let of_curve =
        document.tables.iter().filter(|table| table.scene == scene && table.curve == curve);
    of_curve
        .filter_map(|table| {
            Some((table, table.measures.iter().position(|shown| shown == measure)?))
        })
        .flat_map(|(table, column)| {
            table.row.iter().filter_map(move |row| {
                Some(Place { x: row.x, y: *row.published.get(column)?, bar: None })
            })
        })
        .collect()
}

/// Returns an entry of the legend.
fn key(line: &Line) -> String {
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
