//! The callers that each route admits.

use std::borrow::Cow;
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
pub(super) struct AccessTable(HashMap<&'static str, Vec<(String, Access)>>);

impl AccessTable {
    pub(super) fn new(routes: impl IntoIterator<Item = (&'static str, &'static str, Access)>) -> Self {
        let mut table = HashMap::<_, Vec<_>>::new();
        for (path, method, access) in routes {
            table.entry(path).or_default().push((method.to_uppercase(), access));
        }
        Self(table)
    }

    /// The access of a method of a route. HEAD counts as GET. An entry that is missing means [`Access::Operators`].
    pub(super) fn of(&self, route: &str, method: &Method) -> Access {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let mut methods = self.0.get(route).into_iter().flatten();
        methods.find(|(known, _)| known == method.as_str()).map_or_else(Access::default, |(_, access)| *access)
    }

    /// The pattern of a route.
    pub(super) fn pattern(&self, route: &str) -> Cow<'static, str> {
        self.0.get_key_value(route).map_or_else(|| route.to_owned().into(), |(pattern, _)| Cow::Borrowed(*pattern))
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str, Access)> {
        self.0.iter().flat_map(|(path, methods)| methods.iter().map(|(method, access)| (*path, method.as_str(), *access)))
    }
}
