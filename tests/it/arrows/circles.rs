//! Finds import circles among source files.
//!
//! A file below a module belongs to that module, so its use of the modules above it is not an import. A module's use of a file below it is one.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::Named;

/// Returns every set of files that all import each other, directly or through others of the set, as sorted module names. `files` holds the
/// module of each file and the paths that it names.
pub fn circles(files: &[(&[String], &[Named])]) -> Vec<Vec<String>> {
    let numbers: BTreeMap<&[String], usize> = files.iter().enumerate().map(|(number, (module, _))| (*module, number)).collect();
    let imports: Vec<BTreeSet<usize>> = files.iter().map(|(module, named)| imports(module, named, &numbers)).collect();
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(|from| reached(from, &imports)).collect();
    let mut found = BTreeSet::new();
    for (start, reached_from_start) in reached.iter().enumerate() {
        let circle: BTreeSet<String> = reached_from_start
            .iter()
            .filter(|other| reached[**other].contains(&start))
            .map(|other| files[*other].0.join("::"))
            .collect();
        if circle.len() > 1 {
            found.insert(circle.into_iter().collect::<Vec<_>>());
        }
    }
    found.into_iter().collect()
}

/// The files that a file imports from, except those that it is below.
fn imports(module: &[String], named: &[Named], numbers: &BTreeMap<&[String], usize>) -> BTreeSet<usize> {
    let inside_module = |path: &[String]| [module, path].concat();
    let targets = named.iter().map(|named| match named.path.split_first() {
        Some((first, rest)) if first == "crate" => rest.to_vec(),
        _ => inside_module(&named.path),
    });
    let file = |path: Vec<String>| {
        (1..=path.len()).rev().find_map(|length| Some((length, *numbers.get(&path[..length])?, path.clone())))
    };
    let is_import = |(length, _, path): &(usize, usize, Vec<String>)| !module.starts_with(&path[..*length]);
    targets.filter_map(file).filter(is_import).map(|(_, number, _)| number).collect()
}

fn reached(from: usize, imports: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(next) = pending.pop() {
        pending.extend(imports[next].iter().filter(|file| reached.insert(**file)));
    }
    reached
}
