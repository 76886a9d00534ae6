//! Lines with error bars as SVG. Colours are variables of the style sheet, so that the picture
//! follows the light and dark themes.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::frame::label_above;
use super::markup::number;
use super::scale;

/// One line.
#[derive(Clone, Debug)]
pub(super) struct ChartLine {
    pub(super) label: String,
    pub(super) colour: usize,
    pub(super) dash: DashPattern,
    pub(super) marker: PointMarker,
    pub(super) places: Vec<ChartPoint>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartPoint {
    pub(super) x: f64,
    pub(super) y: f64,
    /// The ends of the error bar.
    pub(super) bar: Option<(f64, f64)>,
}

/// The dash pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DashPattern {
    Solid,
    Dashed,
    Dotted,
    Long,
    /// For published values.
    Fine,
}

impl DashPattern {
    /// Returns the pattern of the curve with this rank.
    pub(super) const fn from_rank(rank: usize) -> Self {
        match rank % 4 {
            0 => Self::Solid,
            1 => Self::Dashed,
            2 => Self::Dotted,
            _ => Self::Long,
        }
    }

    /// Returns the value of `stroke-dasharray`.
    pub(super) const fn css(self) -> &'static str {
        match self {
            Self::Solid => "none",
            Self::Dashed => "6 4",
            Self::Dotted => "2 3",
            Self::Long => "11 4",
            Self::Fine => "1 4",
        }
    }
}

/// The symbol at each point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointMarker {
    Disc,
    Ring,
    Square,
    Triangle,
    /// For published values.
    Cross,
    /// Nothing: the line was not measured.
    None,
}

/// Colours of the style sheet, `--c0` and so on.
pub(super) const COLOURS: usize = 8;

impl PointMarker {
    /// Returns the marker of the curve with this rank.
    pub(super) const fn from_rank(rank: usize) -> Self {
        match rank % 4 {
            0 => Self::Disc,
            1 => Self::Ring,
            2 => Self::Square,
            _ => Self::Triangle,
        }
    }

    /// Returns the marker at a position in a picture.
    pub(super) fn svg(self, x: i32, y: i32, colour: usize) -> String {
        let fill = match self {
            Self::Ring => "var(--paper)".to_owned(),
            _ => format!("var(--c{colour})"),
        };
        let style = format!("fill=\"{fill}\" stroke=\"var(--c{colour})\" stroke-width=\"1.5\"");
        match self {
            Self::Disc | Self::Ring => format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3.5\" {style}/>"),
            Self::None => String::new(),
            Self::Cross => {
                // Larger than the marker of our own value, which may be at the same place.
                format!("<path d=\"M{} {}l14 14m0 -14l-14 14\" {style}/>", x - 7, y - 7)
            }
            Self::Square => {
                format!("<rect x=\"{}\" y=\"{}\" width=\"6\" height=\"6\" {style}/>", x - 3, y - 3)
            }
            Self::Triangle => {
                format!("<path d=\"M{x} {}L{} {}H{}Z\" {style}/>", y - 4, x + 4, y + 3, x - 4)
            }
        }
    }
}

/// The labels of the axes, and the scale of x.
#[derive(Clone, Copy)]
pub(super) struct AxisLabels<'a> {
    pub(super) x: &'a str,
    pub(super) scale: AxisScale,
    pub(super) y: &'a str,
}

/// The scale of the x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisScale {
    /// Linear.
    Linear,
    /// Logarithmic: places are decimal logarithms.
    Decades,
}

impl AxisScale {
    /// Returns the ticks as places on the axis.
    fn ticks(self, left: f64, right: f64, most: usize) -> Vec<f64> {
        match self {
            Self::Linear => scale::ticks(left, right, most),
            Self::Decades => scale::decades(left, right).into_iter().map(f64::log10).collect(),
        }
    }

    fn number(self, x: f64) -> String {
        match self {
            Self::Linear => number(x),
            Self::Decades => number(10_f64.powf(x)),
        }
    }
}

/// Placeholders for colours of the style sheet, which replace them afterwards.
const INK: RGBColor = RGBColor(1, 1, 1);
const FAINT: RGBColor = RGBColor(2, 2, 2);

/// Returns the placeholder for colour number n.
const fn placeholder(colour: usize) -> RGBColor {
    RGBColor(3, 3, colour as u8)
}

/// A range with given ticks.
struct AxisRange {
    range: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ranged for AxisRange {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.range()
    }
}

type CartesianChart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<AxisRange, RangedCoordf64>>;

/// Draws lines in a picture of this size.
pub(super) fn draw(lines: &[ChartLine], labels: AxisLabels<'_>, size: (u32, u32)) -> String {
    let mut svg = String::new();
    let mut markers = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        // Writing to a string cannot fail; even if it did, an empty picture is better than a panic.
        let drawn = plot(&root, lines, labels, size.0 < 500, &mut markers);
        if drawn.is_err() || root.present().is_err() {
            markers.clear();
        }
    }
    let svg = svg.replacen("</svg>", &format!("{markers}</svg>"), 1);
    finish(&svg, size)
}

fn plot(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    lines: &[ChartLine],
    labels: AxisLabels<'_>,
    narrow: bool,
    markers: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let all = || lines.iter().flat_map(|line| &line.places);
    let right = all().map(|place| place.x).fold(f64::NEG_INFINITY, f64::max);
    let left = all().map(|place| place.x).fold(right, f64::min);
    let top = all().map(|place| place.bar.map_or(place.y, |bar| bar.1.max(place.y)));
    let top = top.fold(0.0, f64::max);
    // A single place is centred among round ticks.
    let margin = if right > left { (right - left) * 0.03 } else { right.abs().max(1.0) };
    // The backend writes font sizes a fifth smaller than given.
    let (text, ticks) = if narrow { (15, 5) } else { (17, 9) };
    let (first, last) = (left - margin, right + margin);
    let (label, label_height) = label_above(labels.y, root.dim_in_pixel().0);
    markers.push_str(&label);
    let mut chart = ChartBuilder::on(root)
        .margin(8)
        .margin_top(8.0 + label_height)
        .margin_right(14)
        .x_label_area_size(if narrow { 46 } else { 52 })
        .y_label_area_size(if narrow { 46 } else { 54 })
        .build_cartesian_2d(
            AxisRange {
                range: (first..last).into(),
                ticks: labels.scale.ticks(first, last, ticks),
            },
            0.0..if top > 0.0 { top * 1.06 } else { 1.0 },
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(1))
        .axis_style(INK.stroke_width(1))
        .label_style(("sans-serif", text).into_font().color(&INK))
        .axis_desc_style(("sans-serif", text).into_font().color(&INK))
        .y_labels(if narrow { 6 } else { 8 })
        .x_label_formatter(&|x| labels.scale.number(*x))
        .y_label_formatter(&|y| number(*y))
        .x_desc(labels.x)
        .draw()?;
    for line in lines {
        series(&mut chart, line)?;
        for place in &line.places {
            let (x, y) = chart.backend_coord(&(place.x, place.y));
            markers.push_str(&line.marker.svg(x, y, line.colour));
        }
    }
    Ok(())
}

fn series(
    chart: &mut CartesianChart<'_, '_>,
    line: &ChartLine,
) -> Result<(), Box<dyn std::error::Error>> {
    let colour = placeholder(line.colour);
    let style = colour.stroke_width(2);
    let places = line.places.iter().map(|place| (place.x, place.y));
    match line.dash {
        DashPattern::Solid => {
            chart.draw_series(LineSeries::new(places, style))?;
        }
        dash => {
            let (on, off) = match dash {
                DashPattern::Dashed => (6, 4),
                DashPattern::Dotted => (2, 3),
                DashPattern::Fine => (1, 4),
                _ => (11, 4),
            };
            chart.draw_series(DashedLineSeries::new(places, on, off, style))?;
        }
    }
    let thin = colour.stroke_width(1);
    for place in &line.places {
        let Some((low, high)) = place.bar.filter(|(low, high)| high > low) else { continue };
        let low = low.max(0.0);
        chart.draw_series([PathElement::new(vec![(place.x, low), (place.x, high)], thin)])?;
        for end in [low, high] {
            let cap = PathElement::new(vec![(-4, 0), (4, 0)], thin);
            chart.draw_series([EmptyElement::at((place.x, end)) + cap])?;
        }
    }
    Ok(())
}

/// Replaces the placeholders with the colours of the style sheet, and lets the picture take the
/// available width.
fn finish(svg: &str, (width, height): (u32, u32)) -> String {
    let mut svg = svg.replace("#010101", "var(--ink)").replace("#020202", "var(--faint)").replacen(
        &format!("width=\"{width}\" height=\"{height}\" "),
        "",
        1,
    );
    for colour in 0..16 {
        svg = svg.replace(&format!("#0303{colour:02X}"), &format!("var(--c{colour})"));
    }
    svg
}
