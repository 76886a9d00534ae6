//! The derivation of the bound at each place, and the measured share of it.

use super::markup::{escape, number};
use super::picture::axis_label;
use crate::measure::Measure;
use crate::results::{PointRow, ResultsDocument};
use crate::situation::{LinkBound, NamedLabel, PayloadBound, SimulationSetup, SteadyPhase};

/// How many curves are shown with their share of the bound: the first ones of the plan.
const CURVES_SHOWN: usize = 2;
/// A share that counts as everything.
const WHOLE: f64 = 0.9995;

pub(super) fn section(document: &ResultsDocument) -> String {
    if !document.figures.iter().any(|figure| figure.bound) {
        return String::new();
    }
    let tables: String = document.scenes.iter().map(|scene| table(document, scene)).collect();
    format!(
        "<section>\n<h2>Where the bound comes from</h2>\n\
         <p>A byte occupies the send buffer from its transmission to its acknowledgement: this \
         holding time is the transmission time of its packet at the bottleneck, the delay of the \
         path, and the delay of the acknowledgement over the path with the lowest delay. A lost \
         packet takes this time again, while other packets of its stream wait at the receiver. \
         The bound is the largest Σ r<sub>p</sub> that the rates of the paths and the buffer σ \
         allow: r<sub>p</sub> is at most the payload rate of the path minus its losses, and \
         Σ r<sub>p</sub> · holding time<sub>p</sub> is at most σ. The buffer is therefore assigned \
         to the paths with the shortest holding times first. σ is counted in whole messages, minus \
         half a message because there is an acknowledgement for every second packet. If something \
         changes during a run, the bound is the average over time; the cost of the change itself \
         and the order of messages within a stream are not considered. If the application keeps \
         one unsent message per stream, the small number is the bound that remains.</p>\n{tables}\
         </section>\n"
    )
}

fn table(document: &ResultsDocument, scene: &NamedLabel) -> String {
    let shown: Vec<&NamedLabel> = document
        .curves
        .iter()
        .filter(|curve| document.points_of_curve(&scene.id, &curve.id).next().is_some())
        .take(CURVES_SHOWN)
        .collect();
    let Some(first) = shown.first() else { return String::new() };
    let head: String = shown
        .iter()
        .map(|curve| format!("<th>{}, share of the bound</th>", escape(&curve.label)))
        .collect();
    let rows: String = document
        .points_of_curve(&scene.id, &first.id)
        .filter_map(|point| Some((point, point.parameters.as_ref()?.simulated()?)))
        .map(|(point, setup)| {
            let bound = setup.bound();
            let shares: String =
                shown.iter().map(|curve| share(document, point, curve, &bound)).collect();
            format!(
                "<tr><th scope=\"row\">{x}</th><td data-label=\"use of the buffer\">{buffer_use}</td>\
                 <td data-label=\"bound\" class=\"n\">{rate} Mbit/s{reduced}</td>{shares}</tr>\n",
                x = escape(format!("{} {}", number(point.x), document.axis.unit).trim()),
                reduced = bound_with_unsent(setup),
                buffer_use = buffer_use(&bound),
                rate = number(bound.rate / 1e6),
            )
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let axis = escape(&axis_label(&document.axis));
    let table = format!(
        "<table class=\"bounds cards\">\n<thead><tr><th>{axis}</th><th>use of the buffer by path</th>\
         <th>bound</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    );
    // A plan without scenes has one table, which needs no title.
    match scene.label.is_empty() {
        true => table,
        false => {
            let title = escape(&scene.label);
            format!("<details open>\n<summary>{title}</summary>\n{table}</details>\n")
        }
    }
}

/// Returns the bound that remains if messages are kept unsent.
fn bound_with_unsent(setup: &SimulationSetup) -> String {
    setup.bound_with_unsent().map_or_else(String::new, |rate| {
        let unsent = setup.application.streams.saturating_sub(1);
        format!("<br><small>{} with {unsent} unsent</small>", number(rate / 1e6))
    })
}

/// Returns the share of the bound that a curve reached at the place of this point.
fn share(
    document: &ResultsDocument,
    point: &PointRow,
    curve: &NamedLabel,
    bound: &PayloadBound,
) -> String {
    let measured = document
        .points_of_curve(&point.scene, &curve.id)
        .find(|other| other.x == point.x)
        .and_then(|other| other.measures.get(&Measure::Throughput));
    let text = measured.map_or_else(String::new, |summary| {
        format!("{:.1} %", 100.0 * summary.value / (bound.rate / 1e6))
    });
    format!("<td data-label=\"{}\" class=\"n\">{text}</td>", escape(&curve.label))
}

/// Returns how the paths use the buffer, phase by phase.
fn buffer_use(bound: &PayloadBound) -> String {
    let several = bound.phases.len() > 1;
    let phase = |phase: &SteadyPhase| {
        let links: Vec<String> = phase.links.iter().map(link_sentence).collect();
        match several {
            true => format!("{} s: {}", number(phase.seconds), links.join("; ")),
            false => links.join("; "),
        }
    };
    bound.phases.iter().map(phase).collect::<Vec<_>>().join("<br>")
}

fn link_sentence(link: &LinkBound) -> String {
    let kilobytes = |bytes: f64| number(bytes / 1e3);
    let name = escape(&link.path);
    if link.carried >= link.capacity * WHOLE {
        return format!("{name} is full with {} kB", kilobytes(link.wanted()));
    }
    if link.carried <= 0.0 {
        return format!("{name} gets none of the {} kB it needs", kilobytes(link.wanted()));
    }
    format!(
        "{name} gets {} of the {} kB it needs: {} of {} Mbit/s",
        kilobytes(link.given()),
        kilobytes(link.wanted()),
        number(link.carried / 1e6),
        number(link.capacity / 1e6),
    )
}
