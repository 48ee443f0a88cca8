//! Problems with settings, and their places.

use std::fmt;

/// A problem and its place.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Located {
    /// A file or an environment variable. `None` if the source has no name (a script).
    pub place: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// The problem and its remedy. It never contains a secret.
    pub message: String,
}

impl Located {
    /// A problem with a file or variable as a whole.
    pub fn at(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: Some(place.into()), line: None, message: message.into() }
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, self.line) {
            (Some(place), Some(line)) => write!(f, "{place}:{line}: {}", self.message),
            (Some(place), None) => write!(f, "{place}: {}", self.message),
            (None, _) => f.write_str(&self.message),
        }
    }
}

/// All problems, at least one. Displayed as one line each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Located>);

impl Problems {
    /// Groups problems by place, in the order in which places appear first, and sorts each group by line.
    pub(super) fn sorted(mut found: Vec<Located>) -> Self {
        let mut places: Vec<Option<String>> = Vec::new();
        for problem in &found {
            if !places.contains(&problem.place) {
                places.push(problem.place.clone());
            }
        }
        found.sort_by_key(|problem| (places.iter().position(|place| *place == problem.place), problem.line));
        Self(found)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
