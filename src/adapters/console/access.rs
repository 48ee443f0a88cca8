//! The callers that each route admits.

use std::collections::HashMap;

use axum::http::Method;

/// The callers that a route admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Access {
    /// Callers with the admin token, with a session that was opened with it, or with a program's token whose scope
    /// allows the route. Everybody if no admin token is set.
    #[default]
    Operators,
    /// Operators, and guests in the rooms of their visits.
    Guests,
    /// Every caller, without a token.
    Everybody,
}

/// The access of each method of each route.
pub(super) struct AccessTable(HashMap<(&'static str, String), Access>);

impl AccessTable {
    pub(super) fn new(routes: impl IntoIterator<Item = (&'static str, &'static str, Access)>) -> Self {
        Self(routes.into_iter().map(|(path, method, access)| ((path, method.to_uppercase()), access)).collect())
    }

    /// The access of a method of a route. HEAD counts as GET. An entry that is missing means [`Access::Operators`].
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
