//! A layer is one source of settings: a file, the environment, or a script. Later layers override earlier ones.

use std::{fmt, iter};

use config::builder::DefaultState;
use config::{Config, ConfigBuilder, ConfigError, Environment, Map, Value, ValueKind};
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::companion::shortened;
use super::mismatch::{Kind, Mismatch, Path, Step, plain};
use super::problem::Located;
use super::secret::unquoted;
use super::strict::{self, Tree};

/// The prefix of environment variables.
const PREFIX: &str = "TERTULIA";
/// Separates sections and keys in the name of a variable.
const SEPARATOR: &str = "__";

/// The maximum depth of a setting. Code that follows the path of a variable recurses at each step, and would overflow the stack.
const MOST_STEPS: usize = 16;

/// How much of an invalid variable's name is shown, in characters.
const SHOWN_CHARS: usize = 120;

/// A source of settings. A later one overrides earlier ones, key by key.
#[derive(Clone)]
pub(super) struct Layer {
    /// Its title in a list of sources. It contains the names of variables, never their values. `None` without variables.
    pub title: Option<String>,
    values: Value,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// A file with this text.
    File(String),
    /// Variables, sorted by name.
    Environment(Vec<(String, String)>),
    /// A tree without a source text. The name is the first part of its paths in messages.
    Script(&'static str),
    /// Settings made on the page, in this file.
    Page(String),
}

impl Layer {
    /// Parses a file's text.
    pub fn file(name: &str, text: &str) -> Result<Self, Located> {
        match toml::from_str(text) {
            Ok(Tree(values)) => Ok(Self { title: Some(name.to_owned()), values, source: Source::File(text.to_owned()) }),
            Err(error) => {
                let line = error.span().map(|span| line_of(text, span.start));
                Err(Located { place: Some(name.to_owned()), line, message: error.message().replace('\n', "; ") })
            }
        }
    }

    /// Selects the variables with our prefix, without white space around their values. Empty variables count as unset. Invalid
    /// names are reported, and so are quotation marks around a value that is not a secret. Quotation marks around a secret are
    /// removed ([`quotation_notes`]).
    pub fn environment(variables: &[(String, String)], problems: &mut Vec<Located>) -> Self {
        let ours = format!("{PREFIX}{SEPARATOR}");
        let is_ours = |name: &str| name.get(..ours.len()).is_some_and(|start| start.eq_ignore_ascii_case(&ours));
        let mut variables: Vec<_> = variables.iter().map(|(name, value)| (name.clone(), value.trim().to_owned())).collect();
        variables.retain(|(name, value)| is_ours(name) && !value.is_empty());
        variables.sort();
        variables.retain(|(name, _)| {
            let is_well_named = is_well_named(name);
            if !is_well_named {
                let shown: String = name.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
                problems.push(Located::at(shown, "is not named TERTULIA__SECTION__KEY, in letters, digits and _"));
            }
            is_well_named
        });
        variables.retain_mut(|(name, value)| match unquoted(value) {
            Some(inside) if is_secret(name) => {
                *value = inside.to_owned();
                !value.is_empty()
            }
            Some(_) => {
                let message = "has quotation marks around its value, which would be part of it; remove them (`docker run --env-file` keeps them)";
                problems.push(Located::at(&*name, message));
                false
            }
            None => true,
        });
        let names: Vec<_> = variables.iter().map(|(name, _)| name.as_str()).collect();
        let title = (!names.is_empty()).then(|| format!("environment ({})", names.join(", ")));
        let environment = Environment::with_prefix(PREFIX)
            .prefix_separator(SEPARATOR)
            .separator(SEPARATOR)
            .source(Some(variables.iter().cloned().collect()));
        let values = built(Config::builder().add_source(environment)).unwrap_or_else(|problem| {
            problems.push(problem);
            Value::new(None, Map::<String, Value>::new())
        });
        Self { title, values, source: Source::Environment(variables) }
    }

    /// A layer from a JSON tree. Keys with the value `null` count as absent.
    pub fn script(name: &'static str, values: serde_json::Value) -> Self {
        let Tree(mut values) = serde_json::from_value(values).unwrap_or(Tree(Value::new(None, ValueKind::Nil)));
        remove_nulls(&mut values);
        Self { title: Some(name.to_owned()), values, source: Source::Script(name) }
    }

    /// The settings that were made on the page, stored in this file.
    pub fn page(file: String, values: serde_json::Value) -> Self {
        let Self { values, .. } = Self::script("page", values);
        Self { title: Some(file.clone()), values, source: Source::Page(file) }
    }

    pub const fn is_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// The path at which this layer sets a value for the given path: the path itself, or a list or single value on the way to it.
    /// Such a value hides the values of lower layers there.
    pub fn value_path(&self, path: &Path) -> Option<Path> {
        let (set, value) = path.follow(&self.values);
        // A list on the way is replaced as a whole, too.
        let is_in_list = set.0.iter().any(|step| matches!(step, Step::Index(_)));
        (set == *path || is_in_list || !matches!(value.kind, ValueKind::Table(_))).then_some(set)
    }

    /// The keys of a section.
    pub fn keys_in(&self, section: &str) -> impl Iterator<Item = &str> {
        let mut keys: Vec<_> = match Path::of(section).value_in(&self.values).map(|value| &value.kind) {
            Some(ValueKind::Table(table)) => table.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        keys.sort_unstable();
        keys.into_iter()
    }

    /// Removes the value at the path. For a path into a list it removes the list's key, so that indexes stay correct.
    fn remove(&mut self, path: &Path) {
        let keys = path.0.iter().rposition(|step| matches!(step, Step::Key(_))).map_or(0, |last| last + 1);
        let path = Path(path.0[..keys].to_vec());
        remove_from(&mut self.values, &path.0);
        if let Source::Environment(variables) = &mut self.source {
            variables.retain(|(name, _)| !path_of(name).is_within(&path));
        }
    }

    /// The problem with its place in this layer. `path` is this layer's [`value_path`](Self::value_path).
    fn locate(&self, mismatch: &Mismatch, path: &Path) -> Located {
        match &self.source {
            Source::File(text) => {
                let (line, shown) = spot(text, mismatch).unzip();
                Located { place: self.title.clone(), line, message: mismatch.message(shown.flatten().as_deref()) }
            }
            Source::Environment(variables) => {
                let affected: Vec<_> = variables.iter().filter(|(name, _)| path_of(name).is_within(path)).collect();
                let names: Vec<_> = affected.iter().map(|(name, _)| name.as_str()).collect();
                let shown = match &affected[..] {
                    [(name, value)] if path_of(name) == mismatch.path => Some(format!("{:?}", shortened(value))),
                    _ => None,
                };
                Located::at(names.join(", "), mismatch.message(shown.as_deref()))
            }
            Source::Page(file) => Located::at(file.as_str(), mismatch.message(None)),
            Source::Script(name) => {
                let shown = mismatch.path.value_in(&self.values).and_then(plain);
                Located { place: None, line: None, message: format!("{name}.{}", mismatch.message(shown.as_deref())) }
            }
        }
    }
}

impl config::Source for Layer {
    fn clone_into_box(&self) -> Box<dyn config::Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        self.values.clone().into_table()
    }
}

impl fmt::Debug for Layer {
    // Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Layer").field(&self.title).finish()
    }
}

/// Merges all layers into one tree.
pub(super) fn merged(layers: &[Layer]) -> Result<Value, Located> {
    built(layers.iter().fold(Config::builder(), |builder, layer| builder.add_source(layer.clone())))
}

/// The value of a key as a text.
pub(super) fn value_of(key: &str, layers: &[Layer]) -> Option<String> {
    let builder = layers.iter().fold(Config::builder(), |builder, layer| builder.add_source(layer.clone()));
    builder.build().and_then(|config| config.get_string(key)).ok()
}

fn built(builder: ConfigBuilder<DefaultState>) -> Result<Value, Located> {
    builder.build().map(|config| config.cache).map_err(|error| Located { place: None, line: None, message: error.to_string() })
}

/// Whether keys may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// A later layer may set missing keys. Keys that are set must have valid values.
    Partial,
    /// No required key may be missing.
    Complete,
}

/// Reads layers into a struct. A value that has the wrong type, or that `check` rejects, is reported with its place and removed,
/// so that one problem does not hide the next. A value that is missing only because it was `reported`, here or before, is no
/// further problem.
pub(super) fn read_layers<T: DeserializeOwned>(
    layers: &mut [Layer],
    completeness: Completeness,
    check: impl Fn(&T) -> Vec<Mismatch>,
    reported: &mut Vec<Path>,
    problems: &mut Vec<Located>,
) -> Option<T> {
    reject_quoted_keys(layers, problems);
    // A value that a later layer may complete is removed only here, not from `layers`.
    let mut rest = layers.to_vec();
    loop {
        let tree = merged(&rest).map_err(|problem| problems.push(problem)).ok()?;
        let (mismatches, read) = match strict::read::<T>(&tree) {
            Ok(read) => (check(&read), Some(read)),
            Err(mismatch) => (vec![mismatch], None),
        };
        if mismatches.is_empty() {
            return read;
        }
        for mismatch in mismatches {
            let is_missing = matches!(mismatch.kind, Kind::Missing(_));
            // The removed value is missing now, for the reader or for a value that needs it.
            let is_consequence = (is_missing && reported.iter().any(|path| path.is_within(&mismatch.path)))
                || (reported.contains(&mismatch.path) && !is_set(&rest, &mismatch.path));
            let may_come_later = is_missing && completeness == Completeness::Partial;
            if !is_consequence && !may_come_later {
                problems.push(located(&rest, &mismatch));
            }
            // If no layer sets the path there is nothing to remove: the value is missing everywhere.
            let (layer, path) = culprit(&rest, &mismatch.path)?;
            rest[layer].remove(&path);
            if !may_come_later {
                layers[layer].remove(&path);
                reported.push(mismatch.path);
            }
        }
    }
}

/// The problem with its place, in the topmost layer that sets the value.
pub(super) fn located(layers: &[Layer], mismatch: &Mismatch) -> Located {
    match (culprit(layers, &mismatch.path), layers) {
        (Some((layer, path)), _) => layers[layer].locate(mismatch, &path),
        (None, [only]) => only.locate(mismatch, &Path::default()),
        (None, _) => Located { place: None, line: None, message: mismatch.message(None) },
    }
}

/// A place as `file:line`.
pub(super) fn place(Located { place, line, .. }: &Located) -> String {
    place.iter().cloned().chain(line.map(|line| line.to_string())).collect::<Vec<_>>().join(":")
}

/// The topmost layer that sets the path, or else its nearest parent that any layer sets.
fn culprit(layers: &[Layer], path: &Path) -> Option<(usize, Path)> {
    let mut parents = iter::successors(Some(path.clone()), Path::parent).filter(|path| !path.0.is_empty());
    parents.find_map(|path| (0..layers.len()).rev().find_map(|layer| Some((layer, layers[layer].value_path(&path)?))))
}

/// Whether any layer sets the path itself.
fn is_set(layers: &[Layer], path: &Path) -> bool {
    layers.iter().any(|layer| layer.value_path(path).as_ref() == Some(path))
}

/// Rejects a quoted key such as `"gate.max_buffer"`, because the crate `config` would read it as a path.
fn reject_quoted_keys(layers: &mut [Layer], problems: &mut Vec<Located>) {
    let is_bare = |key: &String| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    for layer in layers {
        let ValueKind::Table(table) = &layer.values.kind else { continue };
        let mut keys: Vec<String> = table.keys().filter(|key| !is_bare(key)).cloned().collect();
        keys.sort();
        for key in keys {
            let (path, message) =
                (Path(vec![Step::Key(key)]), "is not a known key; in quotes it is one word, not a section and its key");
            let mismatch = Mismatch { path: path.clone(), kind: Kind::Other(message.to_owned()) };
            problems.push(layer.locate(&mismatch, &path));
            layer.remove(&path);
        }
    }
}

/// A note for each variable whose secret had quotation marks, which were removed.
pub(super) fn quotation_notes(variables: &[(String, String)]) -> impl Iterator<Item = String> {
    let quoted = variables.iter().filter(|(name, value)| is_well_named(name) && is_secret(name) && unquoted(value).is_some());
    quoted.map(|(name, _)| {
        format!("{name}: the quotation marks around its value were removed; remove them where it is set (`docker run --env-file` keeps them)")
    })
}

/// Whether the value of a variable is a secret, not the name of a file with one.
fn is_secret(variable: &str) -> bool {
    matches!(path_of(variable).0.last(), Some(Step::Key(key)) if matches!(key.as_str(), "api_key" | "token" | "admin_token"))
}

fn is_well_named(variable: &str) -> bool {
    let is_step = |step: &Step| matches!(step, Step::Key(key) if !key.is_empty());
    let is_of_letters = variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let Path(steps) = path_of(variable);
    is_of_letters && steps.len() <= MOST_STEPS && steps.iter().all(is_step)
}

fn path_of(variable: &str) -> Path {
    let key = variable.to_lowercase();
    let key = key.split_once(SEPARATOR).map_or("", |(_, key)| key);
    Path(key.split(SEPARATOR).map(|step| Step::Key(step.to_owned())).collect())
}

fn remove_nulls(value: &mut Value) {
    match &mut value.kind {
        ValueKind::Table(table) => {
            table.retain(|_, value| !matches!(value.kind, ValueKind::Nil));
            table.values_mut().for_each(remove_nulls);
        }
        ValueKind::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

fn remove_from(root: &mut Value, path: &[Step]) {
    match (path, &mut root.kind) {
        ([Step::Key(key)], ValueKind::Table(table)) => drop(table.remove(key)),
        ([Step::Key(key), rest @ ..], ValueKind::Table(table)) => {
            if let Some(inner) = table.get_mut(key) {
                remove_from(inner, rest);
            }
        }
        ([Step::Index(index), rest @ ..], ValueKind::Array(items)) => {
            if let Some(inner) = items.get_mut(*index) {
                remove_from(inner, rest);
            }
        }
        _ => {}
    }
}

/// The line of the value of a mismatch, and the value as written, if it is on one line.
fn spot(text: &str, mismatch: &Mismatch) -> Option<(usize, Option<String>)> {
    let document = DeTable::parse(text).ok()?;
    let mut at = document.span();
    let mut table = Some(document.get_ref());
    let mut items = None;
    let mut shown = None;
    for (depth, step) in mismatch.path.0.iter().enumerate() {
        let (key_span, value) = match step {
            Step::Key(key) => match table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key)) {
                Some((name, value)) => (name.span(), value),
                None => break,
            },
            Step::Index(index) => match items.and_then(|items: &toml::de::DeArray<'_>| items.get(*index)) {
                Some(value) => (value.span(), value),
                None => break,
            },
        };
        let is_last = depth + 1 == mismatch.path.0.len();
        (table, items, shown) = (None, None, None);
        at = key_span;
        match value.get_ref() {
            DeValue::Table(inner) => table = Some(inner),
            DeValue::Array(inner) => items = Some(inner),
            _ if is_last => shown = text.get(value.span()).filter(|written| !written.contains('\n')),
            _ => {}
        }
    }
    Some((line_of(text, at.start), shown.map(|shown| shortened(shown).into_owned())))
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests;
