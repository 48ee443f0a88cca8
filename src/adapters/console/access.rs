//! Who may use which route.

use std::collections::HashMap;

use axum::http::Method;

/// Who may use a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Access {
    /// Whoever has the admin token, or a session that was opened with it.
    #[default]
    Operators,
    /// Guests, too, in the rooms of their visits.
    Guests,
    /// Everybody, without a token.
    Everybody,
}

/// Who may use each method of each route.
pub(super) struct AccessTable(HashMap<(&'static str, String), Access>);

impl AccessTable {
    pub(super) fn new(routes: impl IntoIterator<Item = (&'static str, &'static str, Access)>) -> Self {
        Self(routes.into_iter().map(|(path, method, access)| ((path, method.to_uppercase()), access)).collect())
    }

    /// Who may use this method of a route. HEAD is a GET. What is not in the table is the operators'.
    pub(super) fn of(&self, route: &str, method: &Method) -> Access {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let is_it = |(path, known): &(&'static str, String)| *path == route && known == method.as_str();
        self.0.iter().find(|(key, _)| is_it(key)).map_or_else(Access::default, |(_, access)| *access)
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str, Access)> {
        self.0.iter().map(|((path, method), access)| (*path, method.as_str(), *access))
    }
}
