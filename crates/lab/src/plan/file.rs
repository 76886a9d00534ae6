//! The keys of a plan file, and their conversion to a plan.

use std::collections::{BTreeMap, BTreeSet};

use eyas_emulator::units::{self, AmountKind, in_words_of_the_file};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::clients;
use super::extract::PlanExtract;
use super::kind::PlanKind;
use super::layers::{self, SettingLayer};
use super::matrix::{ColumnText, PlanMatrix};
use super::{Plan, PlanError, PlanExtent, PlanOptions};
use crate::claim::{Claim, ClaimText, JudgedPoints};
use crate::measure::Measure;
use crate::printable::check_printable;
use crate::situation::{
    AccessSetup, ApplicationSetup, AssociationSetup, EventSetup, GridAxis, GridPoint, NamedLabel,
    PacketMode, PathSetup, RivalSetup, SimulationTimes, SituationGrid,
};

/// Everything that a file can contain. The parts of a situation are parsed here for error messages
/// with line numbers; they are parsed again once all layers have been merged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    #[serde(default)]
    kind: PlanKind,
    name: String,
    title: String,
    about: String,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default = "default_runs")]
    runs: u32,
    #[serde(rename = "live")]
    _live: Option<Table>,
    #[serde(rename = "random")]
    _random: Option<Table>,
    #[serde(rename = "mode")]
    _mode: Option<PacketMode>,
    #[serde(rename = "time")]
    _time: Option<SimulationTimes>,
    #[serde(default, rename = "path")]
    _path: BTreeMap<String, PathSetup>,
    #[serde(default, rename = "access")]
    _access: AccessSetup,
    #[serde(default, rename = "association")]
    _association: AssociationSetup,
    #[serde(default, rename = "application")]
    _application: ApplicationSetup,
    #[serde(default, rename = "rival")]
    _rival: BTreeMap<String, RivalSetup>,
    #[serde(default, rename = "event")]
    _event: Vec<EventSetup>,
    sweep: FileSweep,
    #[serde(default)]
    scene: Vec<FileScene>,
    #[serde(default)]
    curve: Vec<FileCurve>,
    #[serde(default, rename = "clients")]
    _clients: Vec<String>,
    #[serde(default)]
    matrix: Vec<ColumnText>,
    #[serde(default)]
    figure: Vec<PlanFigure>,
    #[serde(default)]
    table: Vec<PublishedTable>,
    #[serde(default)]
    claim: Vec<ClaimText>,
    #[serde(default)]
    judged: Vec<JudgedPoints>,
    #[serde(default)]
    quick: PlanExtract,
    #[serde(default)]
    standard: PlanExtract,
}

impl PlanFile {
    /// Returns the differences from the full plan.
    fn extract(&self, extent: PlanExtent) -> Option<&PlanExtract> {
        match extent {
            PlanExtent::Quick => Some(&self.quick),
            PlanExtent::Standard => Some(&self.standard),
            PlanExtent::Full => None,
        }
    }
}

fn default_runs() -> u32 {
    24
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSweep {
    parameter: String,
    label: Option<String>,
    values: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileScene {
    id: String,
    label: Option<String>,
    #[serde(default)]
    set: Table,
    values: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCurve {
    id: String,
    label: Option<String>,
    #[serde(default)]
    set: Table,
    scenes: Option<Vec<String>>,
    values: Option<Vec<Value>>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFigure {
    /// The title above the figure.
    pub title: String,
    /// The measure.
    pub measure: Measure,
    /// How it is drawn.
    #[serde(default)]
    pub drawing: FigureDrawing,
    /// What stacked bars are made of, from the bottom to the top.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<FigurePart>,
    /// The axis label; that of the measure if not given.
    pub label: Option<String>,
    /// The caption below the figure.
    #[serde(default)]
    pub caption: String,
    /// The scenes to draw; all if empty.
    #[serde(default)]
    pub scenes: Vec<String>,
    /// The curves to draw; all if empty.
    #[serde(default)]
    pub curves: Vec<String>,
    /// Whether each scene gets its own picture.
    #[serde(default)]
    pub each_scene: bool,
    /// Whether the maximum that paths and buffer allow is drawn as well, for the curve with the
    /// highest one. Only if throughput is drawn.
    #[serde(default)]
    pub bound: bool,
}

impl PlanFigure {
    /// Returns all measures that it shows.
    pub fn measures(&self) -> impl Iterator<Item = &Measure> {
        self.parts.iter().map(|part| &part.measure).chain([&self.measure])
    }
}

/// A part of stacked bars.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigurePart {
    /// Its measure, in the unit of the figure's.
    pub measure: Measure,
    /// Its entry in the legend.
    pub label: String,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureDrawing {
    /// A line for each curve along the axis.
    #[default]
    Lines,
    /// A box for each point: the 10th, 25th, 50th, 75th and 90th percentiles and the maximum of all
    /// trials. The statistic of the measure is ignored.
    Boxes,
    /// A group of bars for each scene, with one bar for each curve, at the first place of the axis.
    Bars,
    /// A bar for each point: the median of its trials, with whiskers at the 10th and 90th
    /// percentiles. The statistic of the measure is ignored.
    Medians,
    /// A bar for each place of the axis, made of the figure's parts, and a panel for each scene. The
    /// measure of the figure only names the axis.
    Stacked,
    /// For each point, the cumulative distribution of the trials. The statistic of the measure is
    /// ignored.
    Distribution,
}

impl FigureDrawing {
    /// Returns whether the trials of each point are drawn, and not only a statistic of them.
    pub(crate) const fn shows_trials(self) -> bool {
        matches!(self, Self::Boxes | Self::Medians | Self::Distribution)
    }
}

/// A table of the publication, shown next to the measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// The title above the table.
    pub title: String,
    /// The curve that the publication measured.
    pub curve: String,
    /// The scene; empty if the plan has none.
    #[serde(default)]
    pub scene: String,
    /// Curves shown next to it.
    #[serde(default)]
    pub beside: Vec<String>,
    /// The measures in the columns.
    pub measures: Vec<Measure>,
    /// The publication's rows.
    pub row: Vec<PublishedRow>,
}

/// A row of a publication's table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// The place on the axis, in its unit.
    pub x: f64,
    /// The numbers, in the order of the measures; fewer if the publication has no more.
    #[serde(default)]
    pub published: Vec<f64>,
}

/// The keys that make up a situation.
const SITUATION: [&str; 10] = [
    "live",
    "random",
    "mode",
    "time",
    "path",
    "access",
    "association",
    "application",
    "rival",
    "event",
];

pub(super) fn read(text: &str, options: &PlanOptions) -> Result<Plan, PlanError> {
    // First as it is, so that errors in the file are reported with their line numbers.
    let invalid = |error: toml::de::Error| PlanError(in_words_of_the_file(&error));
    let _: PlanFile = toml::from_str(text).map_err(invalid)?;
    let mut table: Table = toml::from_str(text).map_err(invalid)?;
    let set =
        options.set.iter().map(|text| layers::parse_set(text)).collect::<Result<Vec<_>, _>>()?;
    for layer in &set {
        layers::merge(&mut table, &layer.table);
    }
    let published = clients::add(&mut table, &options.clients)?;
    let shown = check_printable(&Value::Table(table.clone()));
    shown.map_err(|cause| PlanError(cause.to_string()))?;
    let mut file: PlanFile = table
        .clone()
        .try_into()
        .map_err(|error| PlanError(format!("after --set: {}", in_words_of_the_file(&error))))?;
    check_set(&file, &set)?;
    // A user who sets the axis has chosen the points, also where a scene or a curve has its own.
    if set.iter().any(|layer| layer.key == "sweep.values") {
        file.quick.take_all_points();
        file.standard.take_all_points();
        file.scene.iter_mut().for_each(|scene| scene.values = None);
        file.curve.iter_mut().for_each(|curve| curve.values = None);
    }
    check_quick_and_standard(&file)?;
    let grid = SituationGrid {
        points: points(&file, &table, &set, options)?,
        axis: axis(&file.sweep)?,
        scenes: scenes(&file),
        curves: file.curve.iter().map(|curve| named(&curve.id, &curve.label)).collect(),
        runs: runs(&file, options)?,
    };
    check_figures(&file.figure, &grid)?;
    let matrix = PlanMatrix::from_file(&file.matrix, &published, &grid)?;
    let judged = file.judged.iter().try_for_each(JudgedPoints::check);
    judged.map_err(|cause| PlanError(cause.to_string()))?;
    Ok(Plan {
        name: file.name,
        title: file.title,
        about: file.about,
        sources: file.sources,
        notes: file.notes,
        figures: file.figure,
        tables: file.table,
        matrix,
        claims: claims(file.claim, &grid)?,
        shortened: options.extent == PlanExtent::Quick && file.quick.shortens(),
        judged: file.judged,
        set: options.set.clone(),
        extent: options.extent,
        grid,
    })
}

/// Returns the number of runs per point.
fn runs(file: &PlanFile, options: &PlanOptions) -> Result<u32, PlanError> {
    let runs = match options.extent {
        PlanExtent::Quick => file.quick.runs.unwrap_or(1),
        PlanExtent::Standard => file.standard.runs.unwrap_or(file.runs),
        PlanExtent::Full => file.runs,
    };
    match options.runs.unwrap_or(runs) {
        0 => Err(PlanError("runs must be at least 1".to_owned())),
        runs => Ok(runs),
    }
}

fn claims(texts: Vec<ClaimText>, grid: &SituationGrid) -> Result<Vec<Claim>, PlanError> {
    let mut claims: Vec<Claim> = Vec::new();
    for text in texts {
        let claim = Claim::parse(text, grid).map_err(|cause| PlanError(cause.to_string()))?;
        if claims.iter().any(|other| other.id == claim.id) {
            let message = format!("claim {:?}: there is another one of this id", claim.id);
            return Err(PlanError(message));
        }
        claims.push(claim);
    }
    Ok(claims)
}

fn named(id: &str, label: &Option<String>) -> NamedLabel {
    NamedLabel { id: id.to_owned(), label: label.clone().unwrap_or_else(|| id.to_owned()) }
}

fn scenes(file: &PlanFile) -> Vec<NamedLabel> {
    match file.scene.is_empty() {
        true => vec![NamedLabel { id: String::new(), label: String::new() }],
        false => file.scene.iter().map(|scene| named(&scene.id, &scene.label)).collect(),
    }
}

/// Checks the settings of the command line: they take precedence over everything, so they must not
/// set the parameter of the axis.
fn check_set(file: &PlanFile, set: &[SettingLayer]) -> Result<(), PlanError> {
    let swept = &file.sweep.parameter;
    match set.iter().find(|layer| layer.key == *swept) {
        None => Ok(()),
        Some(_) => Err(PlanError(format!(
            "--set {swept}: that is what this plan sweeps; give the values that it is to take, \
             --set 'sweep.values=[\"64 KiB\", \"128 KiB\"]'"
        ))),
    }
}

fn axis(sweep: &FileSweep) -> Result<GridAxis, PlanError> {
    let kind = match sweep.values.first() {
        Some(first) => amount(first)?.1,
        None => return Err(PlanError("sweep.values is empty".to_owned())),
    };
    Ok(GridAxis {
        parameter: sweep.parameter.clone(),
        label: sweep.label.clone().unwrap_or_else(|| sweep.parameter.clone()),
        unit: kind.display_unit().0.to_owned(),
    })
}

/// Returns a value of the axis in its display unit.
fn amount(value: &Value) -> Result<(f64, AmountKind), PlanError> {
    match value {
        Value::Integer(number) => Ok((*number as f64, AmountKind::Number)),
        Value::Float(number) => Ok((*number, AmountKind::Number)),
        Value::String(text) => {
            let (amount, kind) =
                units::parse_amount(text).map_err(|error| PlanError(format!("sweep: {error}")))?;
            Ok((amount / kind.display_unit().1, kind))
        }
        other => Err(PlanError(format!("sweep: {other} is neither a number nor an amount"))),
    }
}

fn points(
    file: &PlanFile,
    table: &Table,
    set: &[SettingLayer],
    options: &PlanOptions,
) -> Result<Vec<GridPoint>, PlanError> {
    check_identifiers(file)?;
    let base: Table = table
        .iter()
        .filter(|(key, _)| SITUATION.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let everywhere = FileScene { id: String::new(), label: None, set: Table::new(), values: None };
    let scenes = match file.scene.is_empty() {
        true => std::slice::from_ref(&everywhere),
        false => file.scene.as_slice(),
    };
    let mut points = Vec::new();
    for scene in scenes {
        for curve in &file.curve {
            if curve.scenes.as_ref().is_some_and(|scenes| !scenes.contains(&scene.id)) {
                continue;
            }
            for value in values(file, scene, curve, options) {
                points.push(point(file, &base, (scene, curve), value, set, options)?);
            }
        }
    }
    let mut ids = BTreeSet::new();
    match points.iter().find(|point| !ids.insert(point.id.as_str())) {
        Some(duplicate) => Err(PlanError(format!("there are two points {}", duplicate.id))),
        None if points.is_empty() => Err(PlanError("no point is left to run".to_owned())),
        None => Ok(points),
    }
}

/// Returns the values of a curve in a scene, among those that are run.
fn values<'a>(
    file: &'a PlanFile,
    scene: &'a FileScene,
    curve: &'a FileCurve,
    options: &PlanOptions,
) -> Vec<&'a Value> {
    let all = curve.values.as_ref().or(scene.values.as_ref()).unwrap_or(&file.sweep.values);
    let extract = file.extract(options.extent);
    let runs_at = |extract: &PlanExtract, value| extract.runs_at(&scene.id, &curve.id, value);
    all.iter().filter(|value| extract.is_none_or(|extract| runs_at(extract, value))).collect()
}

fn point(
    file: &PlanFile,
    base: &Table,
    (scene, curve): (&FileScene, &FileCurve),
    value: &Value,
    set: &[SettingLayer],
    options: &PlanOptions,
) -> Result<GridPoint, PlanError> {
    let mut table = base.clone();
    let extract = file.extract(options.extent);
    if let Some(extract) = extract {
        layers::merge(&mut table, &extract.below());
    }
    layers::merge(&mut table, &scene.set);
    layers::merge(&mut table, &curve.set);
    if let Some(above) = extract.and_then(|extract| extract.above(&scene.id, &curve.id, value)) {
        layers::merge(&mut table, above);
    }
    layers::merge(&mut table, &layers::nest(&file.sweep.parameter, value.clone()));
    for layer in set.iter().filter(|layer| SITUATION.contains(&layer.first())) {
        layers::merge(&mut table, &layer.table);
    }
    let x = amount(value)?.0;
    let id = point_id(&scene.id, &curve.id, value);
    let refused = |cause| PlanError(format!("point {id}: {cause}"));
    let situation = file.kind.situation(table).map_err(refused)?;
    Ok(GridPoint { x, scene: scene.id.clone(), curve: curve.id.clone(), situation, id })
}

/// Returns an identifier of letters, digits and characters that are safe in file names.
fn point_id(scene: &str, curve: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => text.replace(' ', "").replace('/', "p").replace('%', "pc"),
        other => other.to_string(),
    };
    let parts: Vec<&str> =
        [scene, curve, &value].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

fn check_identifiers(file: &PlanFile) -> Result<(), PlanError> {
    let scenes = file.scene.iter().map(|scene| ("scene", &scene.id));
    let curves = file.curve.iter().map(|curve| ("curve", &curve.id));
    let mut ids = BTreeSet::new();
    for (what, id) in scenes.chain(curves).chain([("name", &file.name)]) {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if id.is_empty() || !id.chars().all(is_allowed) {
            let message = format!("{what} {id:?}: use only letters, digits, '-' and '.'");
            return Err(PlanError(message));
        }
        if !ids.insert((what, id)) {
            return Err(PlanError(format!("there are two {what}s {id:?}")));
        }
    }
    if file.curve.is_empty() {
        return Err(PlanError("there is no [[curve]]; give at least one".to_owned()));
    }
    for curve in &file.curve {
        let scenes = curve.scenes.iter().flatten();
        let unknown = |id: &&String| !file.scene.iter().any(|scene| scene.id == **id);
        if let Some(id) = scenes.into_iter().find(unknown) {
            return Err(PlanError(format!("curve {:?} names a scene {id:?}", curve.id)));
        }
    }
    Ok(())
}

fn check_quick_and_standard(file: &PlanFile) -> Result<(), PlanError> {
    let scenes: Vec<&str> = file.scene.iter().map(|scene| scene.id.as_str()).collect();
    let curves: Vec<&str> = file.curve.iter().map(|curve| curve.id.as_str()).collect();
    let overrides = file.scene.iter().map(|scene| &scene.values);
    let overrides =
        overrides.chain(file.curve.iter().map(|curve| &curve.values)).flatten().flatten();
    let values: Vec<&Value> = file.sweep.values.iter().chain(overrides).collect();
    file.quick.check("quick", &scenes, &curves, &values)?;
    file.standard.check("standard", &scenes, &curves, &values)
}

fn check_figures(figures: &[PlanFigure], grid: &SituationGrid) -> Result<(), PlanError> {
    for figure in figures {
        let known = |names: &[NamedLabel], id: &String| names.iter().any(|named| named.id == *id);
        let scene = figure.scenes.iter().find(|id| !known(&grid.scenes, id));
        let curve = figure.curves.iter().find(|id| !known(&grid.curves, id));
        if let Some(id) = scene.or(curve) {
            let title = &figure.title;
            return Err(PlanError(format!("figure {title:?}: there is no scene or curve {id:?}")));
        }
        if figure.parts.is_empty() == (figure.drawing == FigureDrawing::Stacked) {
            let title = &figure.title;
            let what = "drawing = \"stacked\" and parts belong together";
            return Err(PlanError(format!("figure {title:?}: {what}")));
        }
        if figure.bound && figure.measure != Measure::Throughput {
            let title = &figure.title;
            return Err(PlanError(format!("figure {title:?}: bound applies only to throughput")));
        }
    }
    Ok(())
}
