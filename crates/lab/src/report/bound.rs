//! How the bound of each place comes about, and how much of it was measured.

use super::markup::{escape, number};
use super::picture::axis_label;
use crate::measure::Measure;
use crate::results::{Document, PointRow};
use crate::situation::{Bound, LinkBound, Named, Phase, Setup};

/// Curves of which the share of the bound is shown: those named first in the plan.
const CURVES_SHOWN: usize = 2;
/// A share that is as good as all.
const WHOLE: f64 = 0.9995;

pub(super) fn section(document: &Document) -> String {
    if !document.figures.iter().any(|figure| figure.bound) {
        return String::new();
    }
    let tables: String = document.scenes.iter().map(|scene| table(document, scene)).collect();
    format!(
        "<section>\n<h2>Where the bound comes from</h2>\n\
         <p>A byte stays in the send buffer from its sending to its acknowledgement: its packet \
         takes its time on the bottleneck, goes there with the delay of the path and is \
         acknowledged over the path of the least delay; what is lost does so again, and at the receiver others of its stream wait for it. Paths carry \
         together what their rates r<sub>p</sub> and the buffer σ allow: most Σ r<sub>p</sub> with \
         r<sub>p</sub> at most the payload rate of the path, less what it loses, and \
         Σ r<sub>p</sub> · holding time<sub>p</sub> at most σ. So the buffer goes to the paths of \
         the shortest holding times first. σ counts in whole messages, less half of one, as there \
         is an acknowledgement for every second packet. Where something changes during a run, the \
         bound is the average over the time; what a change costs is left out, and so is the order \
         of messages within a stream. Where the application keeps a message of each stream \
         unsent, the small number says what that leaves of the bound.</p>\n{tables}</section>\n"
    )
}

fn table(document: &Document, scene: &Named) -> String {
    let shown: Vec<&Named> = document
        .curves
        .iter()
        .filter(|curve| document.along(&scene.id, &curve.id).next().is_some())
        .take(CURVES_SHOWN)
        .collect();
    let Some(first) = shown.first() else { return String::new() };
    let head: String = shown
        .iter()
        .map(|curve| format!("<th>{}, of the bound</th>", escape(&curve.label)))
        .collect();
    let rows: String = document
        .along(&scene.id, &first.id)
        .filter_map(|point| Some((point, point.parameters.simulated()?)))
        .map(|(point, setup)| {
            let bound = setup.bound();
            let shares: String =
                shown.iter().map(|curve| share(document, point, curve, &bound)).collect();
            format!(
                "<tr><th scope=\"row\">{x}</th><td data-label=\"spent on\">{spent}</td>\
                 <td data-label=\"bound\" class=\"n\">{rate} Mbit/s{less}</td>{shares}</tr>\n",
                x = escape(format!("{} {}", number(point.x), document.axis.unit).trim()),
                less = less(setup),
                spent = spent(&bound),
                rate = number(bound.rate / 1e6),
            )
        })
        .collect();
    format!(
        "<details open>\n<summary>{title}</summary>\n<table class=\"bounds cards\">\n\
         <thead><tr><th>{axis}</th><th>what the buffer is spent on, path by path</th>\
         <th>bound</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</details>\n",
        title = escape(&scene.label),
        axis = escape(&axis_label(&document.axis)),
    )
}

/// What is left of the bound where messages are kept unsent.
fn less(setup: &Setup) -> String {
    setup.bound_with_unsent().map_or_else(String::new, |rate| {
        let unsent = setup.application.streams.saturating_sub(1);
        format!("<br><small>{} with {unsent} unsent</small>", number(rate / 1e6))
    })
}

/// What a curve reached of the bound at the place of this point.
fn share(document: &Document, point: &PointRow, curve: &Named, bound: &Bound) -> String {
    let measured = document
        .along(&point.scene, &curve.id)
        .find(|other| other.x == point.x)
        .and_then(|other| other.measures.get(&Measure::Throughput));
    let text = measured.map_or_else(String::new, |summary| {
        format!("{:.1} %", 100.0 * summary.value / (bound.rate / 1e6))
    });
    format!("<td data-label=\"{}\" class=\"n\">{text}</td>", escape(&curve.label))
}

fn spent(bound: &Bound) -> String {
    let several = bound.phases.len() > 1;
    let phase = |phase: &Phase| {
        let links: Vec<String> = phase.links.iter().map(link).collect();
        match several {
            true => format!("{} s: {}", number(phase.seconds), links.join("; ")),
            false => links.join("; "),
        }
    };
    bound.phases.iter().map(phase).collect::<Vec<_>>().join("<br>")
}

fn link(link: &LinkBound) -> String {
    let kilobytes = |bytes: f64| number(bytes / 1e3);
    let name = escape(&link.path);
    if link.carried >= link.capacity * WHOLE {
        return format!("{name} full with {} kB", kilobytes(link.wanted()));
    }
    if link.carried <= 0.0 {
        return format!("{name} gets nothing of its {} kB", kilobytes(link.wanted()));
    }
    format!(
        "{name} gets {} of its {} kB: {} of {} Mbit/s",
        kilobytes(link.given()),
        kilobytes(link.wanted()),
        number(link.carried / 1e6),
        number(link.capacity / 1e6),
    )
}
