//! `result.json`: everything that a reader, a report or another program needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use eyas_sctp::config::{MultipathProfile, ProfileChoice, ProfileName};
use serde::{Deserialize, Serialize};

use super::ResultsError;
use super::crumbs;
use super::matrix::{self, MatrixTable};
use super::outlier::{self, NetworkOutlier};
use super::store::{create_directory, read_file, write_atomically};
use crate::claim::{self, ClaimOutcome, ClaimVerdict};
use crate::measure::Measure;
use crate::plan::{Plan, PlanExtent, PlanFigure, PublishedTable};
use crate::printable::{make_printable, printable};
use crate::run::{PacketCourse, RunResult, RunResults};
use crate::simulation::ACCESS_QUEUE;
use crate::situation::{
    GridAxis, GridPoint, MappingSetup, NamedLabel, PacketMode, RandomSetup, SimulationSetup,
    Situation, live,
};
use crate::statistics::{IntervalMethod, SampleSummary, TrialStatistic, percentile};

/// The version of `result.json`; files of other versions are rejected.
pub const SCHEMA_VERSION: u32 = 2;
/// The number of streams that are shown individually; if there are more, only totals are shown.
const STREAMS_SHOWN: u16 = 16;
/// The file name in the output directory.
const FILE: &str = "result.json";

/// The results of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultsDocument {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The name of the plan.
    pub plan: String,
    /// The title of the plan.
    pub title: String,
    /// A description of what it shows.
    pub about: String,
    /// The sources.
    pub sources: Vec<String>,
    /// Notes for readers.
    pub notes: Vec<String>,
    /// How it was run.
    pub run: RunInfo,
    /// Descriptions of what was emulated, and how.
    pub emulated: Vec<String>,
    /// The choices of the profiles used.
    pub choices: Vec<ChoiceRow>,
    /// The axis.
    pub axis: GridAxis,
    /// The scenes.
    pub scenes: Vec<NamedLabel>,
    /// The curves.
    pub curves: Vec<NamedLabel>,
    /// The figures.
    pub figures: Vec<PlanFigure>,
    /// Tables of the publication, shown next to the measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<PublishedTable>,
    /// One table of all curves, if the plan has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixTable>,
    /// Every situation, with its parameters and measures.
    pub points: Vec<PointRow>,
    /// The verdicts about the claims.
    pub claims: Vec<ClaimVerdict>,
}

/// How a plan was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The version of eyas.
    pub version: String,
    /// The commit of the code, or `unknown`.
    pub commit: String,
    /// The extent to which the plan was run.
    pub extent: PlanExtent,
    /// The settings of the command line.
    pub set: Vec<String>,
    /// The number of runs per point.
    pub runs: u32,
    /// Their seeds, the same for every point.
    pub seeds: Vec<u64>,
    /// The total number of events that the simulator processed.
    pub events: u64,
}

/// One choice of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoiceRow {
    /// The option.
    pub name: String,
    /// The choice.
    pub value: String,
    /// The source of the choice.
    pub source: String,
    /// Whether it is based only on its fit to the published numbers.
    pub fitted: bool,
}

/// One situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointRow {
    /// The unique identifier.
    pub id: String,
    /// The scene.
    pub scene: String,
    /// The curve.
    pub curve: String,
    /// The place on the axis.
    pub x: f64,
    /// Everything that was simulated or emulated; nothing in a [compact](ResultsDocument::compact)
    /// document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Situation>,
    /// The measures, by name.
    pub measures: BTreeMap<Measure, SampleSummary>,
    /// For each column of a live point: percentiles 0 to 100 of all trials.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub percentiles: BTreeMap<String, Vec<f64>>,
    /// The networks drawn at random that miss what is wanted, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<NetworkOutlier>,
    /// The packets of the first trial, if a program was run: one course per fetch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<PacketCourse>,
}

impl ChoiceRow {
    fn from_choice(choice: &ProfileChoice) -> Self {
        Self {
            name: choice.name.to_owned(),
            value: choice.value.to_owned(),
            source: choice.source.to_owned(),
            fitted: choice.fitted,
        }
    }
}

impl ResultsDocument {
    /// Summarises the results.
    #[must_use]
    pub fn new(plan: &Plan, results: &RunResults, commit: &str, seeds: Vec<u64>) -> Self {
        let events = results.points.values().flatten().map(|run| run.events).sum();
        Self {
            schema: SCHEMA_VERSION,
            plan: plan.name.clone(),
            title: plan.title.clone(),
            about: plan.about.clone(),
            sources: plan.sources.clone(),
            notes: notes(plan, results),
            emulated: emulated(plan),
            choices: choices(plan),
            axis: plan.grid.axis.clone(),
            scenes: plan.grid.scenes.clone(),
            curves: plan.grid.curves.clone(),
            figures: plan.figures.clone(),
            tables: plan.tables.clone(),
            matrix: matrix::matrix_table(plan, results),
            points: plan.grid.points.iter().map(|point| row(point, results, &seeds)).collect(),
            claims: plan.claims.iter().map(|claim| claim.judge(plan.basis(), results)).collect(),
            run: RunInfo {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: commit.to_owned(),
                extent: plan.extent,
                set: plan.set.clone(),
                runs: plan.grid.runs,
                seeds,
                events,
            },
        }
    }

    /// Reads the document in an output directory.
    ///
    /// # Errors
    /// If there is none, or it was written by another version of eyas.
    pub fn read(out: &Path) -> Result<Self, ResultsError> {
        Self::read_file(&out.join(FILE))
    }

    /// Reads a document from a file.
    ///
    /// # Errors
    /// If there is none, or it was written by another version of eyas.
    pub fn read_file(path: &Path) -> Result<Self, ResultsError> {
        let text = read_file(path)?;
        let refused = |cause: String| ResultsError::Content {
            path: path.to_owned(),
            cause: printable(&cause),
        };
        let mut value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|cause| refused(cause.to_string()))?;
        // The file may be anybody's.
        make_printable(&mut value);
        match value["schema"].as_u64() {
            Some(version) if version == u64::from(SCHEMA_VERSION) => {}
            _ => return Err(refused("not a result of this version of eyas lab".to_owned())),
        }
        serde_json::from_value(value).map_err(|cause| refused(cause.to_string()))
    }

    /// Returns what a page with pictures and claims needs: of each point only the measures that are
    /// drawn or in a published table, without its parameters.
    #[must_use]
    pub fn compact(mut self) -> Self {
        let drawn = self.figures.iter().flat_map(PlanFigure::measures);
        let reported = self.tables.iter().flat_map(|table| &table.measures);
        let mut wanted: BTreeSet<Measure> = drawn.chain(reported).cloned().collect();
        if self.figures.iter().any(|figure| figure.bound) {
            wanted.insert(Measure::Bound);
        }
        let bars = |figure: &PlanFigure| figure.drawing.shows_trials();
        let of_trials = self.figures.iter().filter(|figure| bars(figure));
        let columns: BTreeSet<String> = of_trials
            .filter_map(|figure| match &figure.measure {
                Measure::Column(_, column) => Some(column.clone()),
                _ => None,
            })
            .collect();
        for point in &mut self.points {
            point.parameters = None;
            point.packets.clear();
            point.measures.retain(|measure, _| wanted.contains(measure));
            point.percentiles.retain(|column, _| columns.contains(column));
        }
        self
    }

    /// Returns the text of `result.json`.
    ///
    /// # Errors
    /// If a number cannot be represented, which does not happen with measured ones.
    pub fn to_json(&self) -> Result<String, ResultsError> {
        let text = serde_json::to_string_pretty(self).map_err(|cause| ResultsError::Content {
            path: FILE.into(),
            cause: cause.to_string(),
        })?;
        Ok(text + "\n")
    }

    /// Writes it to an output directory, which is created if necessary.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), ResultsError> {
        create_directory(out)?;
        write_atomically(&out.join(FILE), &self.to_json()?)
    }

    /// Returns the methods by which its intervals were computed, for readers.
    #[must_use]
    pub fn methods(&self) -> Vec<&'static str> {
        let shown = self.figures.iter().flat_map(PlanFigure::measures);
        let reported = self.tables.iter().flat_map(|table| &table.measures);
        let measures: BTreeSet<&Measure> = shown.chain(reported).collect();
        let of_point = |point: &PointRow| -> BTreeSet<IntervalMethod> {
            let summaries = measures.iter().filter_map(|measure| point.measures.get(*measure));
            summaries.filter_map(|summary| Some(summary.interval?.method)).collect()
        };
        let methods: BTreeSet<IntervalMethod> = self.points.iter().flat_map(of_point).collect();
        methods.into_iter().map(IntervalMethod::describe).collect()
    }

    /// Returns a sentence that states which claims this run does not decide, and why; `None` if it
    /// decides all.
    #[must_use]
    pub fn claims_without_verdict(&self) -> Option<String> {
        let of = |outcome: ClaimOutcome| {
            let claims = self.claims.iter().filter(|claim| claim.outcome == outcome);
            let ids: Vec<&str> = claims.map(|claim| claim.id.as_str()).collect();
            (!ids.is_empty()).then(|| format!("{} ({})", ids.join(", "), outcome.describe()))
        };
        let open = [ClaimOutcome::NotMeasured, ClaimOutcome::NotJudged, ClaimOutcome::Undecided];
        let parts = open.into_iter().filter_map(of);
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| format!("It does not decide claims {}.", parts.join(" and ")))
    }

    /// Returns the points of one curve of one scene, in the order of the axis.
    pub fn points_of_curve<'a>(
        &'a self,
        scene: &'a str,
        curve: &'a str,
    ) -> impl Iterator<Item = &'a PointRow> {
        self.points.iter().filter(move |point| point.scene == scene && point.curve == curve)
    }
}

fn row(point: &GridPoint, results: &RunResults, seeds: &[u64]) -> PointRow {
    let runs = results.points.get(&point.id).map_or(&[][..], Vec::as_slice);
    let (measures, percentiles) = match &point.situation {
        Situation::Simulated(setup) => {
            let measures = measures(setup).into_iter().filter_map(|measure| {
                let samples: Vec<f64> =
                    runs.iter().map(|run| measure.value(&point.situation, run)).collect();
                SampleSummary::from_samples(&samples).map(|summary| (measure, summary))
            });
            (measures.collect(), BTreeMap::new())
        }
        Situation::Live(_) | Situation::Random(_) => {
            of_trials(&point.id, &results.pooled(&point.id))
        }
    };
    let outliers = point.situation.random().map(|setup| outlier::all(setup, seeds, runs));
    PointRow {
        id: point.id.clone(),
        scene: point.scene.clone(),
        curve: point.curve.clone(),
        x: point.x,
        parameters: Some(point.situation.clone()),
        measures,
        percentiles,
        outliers: outliers.unwrap_or_default(),
        packets: runs
            .iter()
            .find_map(|run| run.observed.as_ref())
            .map_or_else(Vec::new, |observed| observed.courses.clone()),
    }
}

/// Returns the notes for readers: those of the plan, what is missing from the page, and what is not
/// judged.
fn notes(plan: &Plan, results: &RunResults) -> Vec<String> {
    let skipped = results
        .skipped
        .iter()
        .map(|(what, points)| format!("Left out: {}. {what}.", left_out(plan, points).join(", ")));
    let unjudged = plan.judged.iter().filter_map(|rule| rule.excluded(&plan.grid, results));
    let shared = (plan.is_live() && results.concurrent_runs > 1)
        .then(|| format!("Up to {} concurrent runs shared the machine.", results.concurrent_runs));
    plan.notes.iter().cloned().chain(skipped).chain(unjudged).chain(shared).collect()
}

/// Returns the points that were left out: by the label of their curve if the whole curve was left
/// out.
fn left_out<'a>(plan: &'a Plan, points: &'a BTreeSet<String>) -> Vec<&'a str> {
    let is_whole = |curve: &&NamedLabel| {
        let mut all = plan.grid.points.iter().filter(|point| point.curve == curve.id).peekable();
        all.peek().is_some() && all.all(|point| points.contains(&point.id))
    };
    let curves: Vec<&NamedLabel> = plan.grid.curves.iter().filter(is_whole).collect();
    let in_curve = |id: &str| {
        plan.grid.point(id).is_some_and(|point| curves.iter().any(|curve| curve.id == point.curve))
    };
    let single = points.iter().map(String::as_str).filter(|id| !in_curve(id));
    curves.iter().map(|curve| curve.label.as_str()).chain(single).collect()
}

/// The statistics that summarise a live point.
const STATISTICS: [TrialStatistic; 9] = [
    TrialStatistic::Mean,
    TrialStatistic::Deviation,
    TrialStatistic::Least,
    TrialStatistic::Percentile(10),
    TrialStatistic::Percentile(50),
    TrialStatistic::Percentile(90),
    TrialStatistic::Percentile(95),
    TrialStatistic::Percentile(99),
    TrialStatistic::Most,
];

fn of_trials(
    point: &str,
    pool: &RunResult,
) -> (BTreeMap<Measure, SampleSummary>, BTreeMap<String, Vec<f64>>) {
    let mut measures = BTreeMap::new();
    let mut percentiles = BTreeMap::new();
    for (column, trials) in &pool.columns {
        let summaries = claim::summaries(point, column, trials, &STATISTICS);
        let named = |(statistic, summary)| (Measure::Column(statistic, column.clone()), summary);
        measures.extend(summaries.into_iter().map(named));
        let mut sorted = trials.clone();
        sorted.sort_by(f64::total_cmp);
        let places = (0..=100).map(|percent| percentile(&sorted, f64::from(percent)));
        percentiles.insert(column.clone(), places.collect());
    }
    (measures, percentiles)
}

/// Returns all measures of one run, in the order of their names.
pub(super) fn measures_of(situation: &Situation, run: &RunResult) -> BTreeSet<Measure> {
    match situation {
        Situation::Simulated(setup) => measures(setup).into_iter().collect(),
        // A network is a single trial.
        Situation::Random(_) => {
            let mean = |column: &String| Measure::Column(TrialStatistic::Mean, column.clone());
            run.columns.keys().map(mean).collect()
        }
        Situation::Live(_) => {
            let named = |column: &String| {
                STATISTICS.map(|statistic| Measure::Column(statistic, column.clone()))
            };
            run.columns.keys().flat_map(named).collect()
        }
    }
}

/// Returns all measures of a set-up.
fn measures(setup: &SimulationSetup) -> Vec<Measure> {
    let mut measures = vec![
        Measure::Throughput,
        Measure::Delay,
        Measure::Ceiling,
        Measure::Share,
        Measure::Bound,
        Measure::Slowest,
        Measure::Gap,
    ];
    for stream in 0..setup.application.all_streams().min(STREAMS_SHOWN) {
        measures.extend([Measure::StreamThroughput(stream), Measure::StreamDelay(stream)]);
    }
    for name in setup.path.keys() {
        measures.extend([Measure::Path(name.clone()), Measure::Dropped(name.clone())]);
    }
    measures.extend(setup.rival.keys().map(|name| Measure::Rival(name.clone())));
    measures
}

/// Returns the notes about the simulation itself.
fn emulated(plan: &Plan) -> Vec<String> {
    if plan.is_live() {
        return plan
            .grid
            .points
            .iter()
            .find_map(|point| point.situation.live())
            .map_or_else(Vec::new, live::LiveSetup::emulated);
    }
    let random = plan.grid.points.iter().find_map(|point| point.situation.random());
    let drawn = random.map_or_else(Vec::new, RandomSetup::emulated);
    let mut notes = vec![
        "Network: simulated in virtual time (eyas-netem), in integer nanoseconds, with one random \
         stream per link."
            .to_owned(),
        format!(
            "Transport: eyas-sctp, the same code that runs on real networks; {}, over IPv4 (header \
             of 20 bytes, protocol 132).",
            packets(plan),
        ),
        "Hosts: infinitely fast; no time passes between the arrival of a packet and the reply."
            .to_owned(),
    ];
    if let Some(setup) = plan.grid.points.first().and_then(|point| point.situation.simulated()) {
        let (access, time) = (setup.access, setup.time);
        notes.push(format!(
            "Access links: {} and {} each, with a queue of {} packets; bottlenecks according to the \
             parameters of each point.",
            access.rate, access.delay, ACCESS_QUEUE,
        ));
        notes.push(format!(
            "Application: saturated, ordered messages of {} bytes; opened between {} and {}, \
             measured for {} from {} on.",
            setup.application.message, time.start[0], time.start[1], time.duration, time.warm_up,
        ));
    }
    notes.extend(drawn);
    notes.extend(crumbs::warnings(plan));
    notes
}

/// Describes the packets of a simulated plan.
fn packets(plan: &Plan) -> &'static str {
    let has = |mode| {
        let mut setups = plan.grid.points.iter().filter_map(|point| point.situation.simulated());
        setups.any(|setup| setup.mode == mode)
    };
    match (has(PacketMode::Wire), has(PacketMode::Struct)) {
        (true, true) => {
            "packets are passed as values of the same length, and encoded and parsed at the points with \
             mode = \"wire\""
        }
        (true, false) => "packets are encoded and parsed (mode = \"wire\")",
        _ => "packets are passed as values of the same length",
    }
}

/// Returns the choices of the profiles used, each once.
fn choices(plan: &Plan) -> Vec<ChoiceRow> {
    let profiles: BTreeSet<&str> = plan
        .grid
        .points
        .iter()
        .filter_map(|point| point.situation.simulated())
        .filter(|setup| setup.association.profile == ProfileName::Pfldnet2010)
        .map(|_| "pfldnet2010")
        .collect();
    let mut rows = Vec::new();
    if !profiles.is_empty() {
        rows.extend(MultipathProfile::Pfldnet2010.choices().iter().map(ChoiceRow::from_choice));
    }
    let fixed = plan
        .grid
        .points
        .iter()
        .filter_map(|point| point.situation.simulated())
        .any(|setup| matches!(setup.association.mapping, Some(MappingSetup::Table(_))));
    if fixed && !rows.is_empty() {
        rows.push(ChoiceRow {
            name: "streams of the fixed mapping".to_owned(),
            value: "in turn".to_owned(),
            source: "Dreibholz et al. 2010, simulation model".to_owned(),
            fitted: false,
        });
    }
    rows
}
