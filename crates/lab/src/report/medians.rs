//! Bars with whiskers: the median of a point's trials, and the 10th and 90th percentiles.

use super::chart;
use super::frame::PictureFrame;
use super::scale::step;
use super::trials::{BoxPlot, MEDIAN, WHISKERS};

/// Draws bars as SVG, grouped by place.
pub(super) fn draw(bars: &[BoxPlot], x_label: &str, y_label: &str, size: (u32, u32)) -> String {
    let highest = bars.iter().map(|bar| bar.percentiles[WHISKERS[1]]).fold(0.0, f64::max);
    let step = step(highest.max(f64::MIN_POSITIVE));
    let top_value = (highest / step).ceil().max(1.0) * step;
    let mut frame = PictureFrame::new(size, y_label);
    let (bottom, axis_height) = (frame.bottom(), frame.axis_height());
    let at = |value: f64| bottom - axis_height * value / top_value;
    for line in 0..=(top_value / step).round() as u32 {
        let value = f64::from(line) * step;
        frame.line(value, at(value));
    }
    let places = places(bars);
    // Half a bar's width is left free on either side of each place.
    let slots = bars.len() + places.len();
    let slot = frame.axis_width() / slots.max(1) as f64;
    let mut begin = PictureFrame::LEFT;
    for place in places {
        let end = begin + slot * (place.len() + 1) as f64;
        for (rank, bar) in place.iter().enumerate() {
            frame.push(&bar_svg(bar, begin + slot * (rank as f64 + 1.0), slot, bottom, &at));
        }
        frame.draw_label(&place[0].label, f64::midpoint(begin, end));
        begin = end;
    }
    frame.end(x_label)
}

/// Returns the bars of each place.
fn places(bars: &[BoxPlot]) -> Vec<&[BoxPlot]> {
    bars.chunk_by(|left, right| left.label == right.label).collect()
}

fn bar_svg(bar: &BoxPlot, middle: f64, slot: f64, bottom: f64, at: &dyn Fn(f64) -> f64) -> String {
    let [low, median, high] = [WHISKERS[0], MEDIAN, WHISKERS[1]].map(|at| bar.percentiles[at]);
    let (low, median, high) = (at(low), at(median), at(high));
    let (width, cap) = (slot * 0.86, slot * 0.2);
    let (left, colour) = (middle - width / 2.0, bar.colour % chart::COLOURS);
    format!(
        "<rect x=\"{left:.1}\" y=\"{median:.1}\" width=\"{width:.1}\" height=\"{:.1}\" \
         fill=\"var(--c{colour})\"/><path d=\"M{middle:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h{:.1}\
         M{:.1} {high:.1}h{:.1}\" stroke=\"var(--ink)\" fill=\"none\"/>\n",
        (bottom - median).max(0.0),
        middle - cap,
        cap * 2.0,
        middle - cap,
        cap * 2.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, colour: usize, middle: f64) -> BoxPlot {
        let percentiles = [middle * 0.9, middle, middle, middle, middle * 1.1];
        BoxPlot { label: label.to_owned(), colour, percentiles, most: middle * 1.2 }
    }

    #[test]
    fn each_place_is_named_once_and_each_bar_is_drawn() {
        let bars = [bar("100", 0, 10.0), bar("100", 1, 14.0), bar("400", 0, 40.0)];
        let svg = draw(&bars, "rate", "CPU", (760, 400));
        assert_eq!(svg.matches("<rect").count(), 3);
        assert_eq!(svg.matches(">100<").count(), 1, "{svg}");
        assert_eq!(svg.matches(">400<").count(), 1, "{svg}");
        assert!(svg.contains(">50<") && !svg.contains(">60<"), "up to the whiskers: {svg}");
        assert!(!draw(&[], "x", "y", (100, 100)).contains("NaN"));
    }
}
