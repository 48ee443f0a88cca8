//! How many connections the limit on open files leaves room for, so that the store never lacks one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::adapters::console::max_rejections;

/// Files that are kept for the store, the models, the platforms and the log.
const RESERVED: u64 = 64;
/// So many connections there are in any case: an operator has to get in.
const FEWEST: usize = 8;

/// With fewer files a server cannot even begin: the store, the runtime and the log take about half of them.
const FEWEST_FILES: u64 = 32;

/// Too few files may be open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} files may be open at once (`ulimit -n`), and a server needs at least {FEWEST_FILES}: raise the limit (in a systemd service, \
     LimitNOFILE)"
)]
pub(super) struct TooFewFiles(u64);

/// Whether so many files may be open at once that a server can begin.
pub(super) fn are_enough() -> bool {
    getrlimit(Resource::Nofile).current.is_none_or(|files| files >= FEWEST_FILES)
}

/// Raises the limit as far as this process may, and returns how many connections may be open: what is wished, or what there is room for.
///
/// # Errors
/// There is room for hardly anything.
pub(super) fn connections(wished: usize) -> Result<usize, TooFewFiles> {
    let known = getrlimit(Resource::Nofile);
    let enough = (wished + max_rejections(wished)) as u64 + RESERVED;
    let open = raised(known, enough);
    if let Some(files) = open.filter(|files| *files < FEWEST_FILES) {
        return Err(TooFewFiles(files));
    }
    let connections = room(open, wished);
    if connections < wished {
        let files = open.unwrap_or_default();
        tracing::warn!(
            files,
            connections,
            "the limit on open files (`ulimit -n`) leaves no room for server.max_connections: raise it"
        );
    }
    Ok(connections)
}

/// The limit that holds from now on; `None` for none.
fn raised(known: Rlimit, enough: u64) -> Option<u64> {
    let current = known.current?;
    let wanted = known.maximum.map_or(enough, |most| most.min(enough));
    if wanted <= current {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: known.maximum }) {
        Ok(()) => Some(wanted),
        Err(_) => Some(current),
    }
}

fn room(open: Option<u64>, wished: usize) -> usize {
    let Some(open) = open else { return wished };
    let left = usize::try_from(open.saturating_sub(RESERVED)).unwrap_or(usize::MAX);
    // A connection over the limit has a file open, too, while it is rejected.
    let left = left.saturating_sub(max_rejections(left.min(wished)));
    left.max(FEWEST).min(wished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_the_store() {
        for (open, wished, connections) in
            [(None, 1024, 1024), (Some(65_536), 1024, 1024), (Some(256), 1024, 180), (Some(40), 1024, 8)]
        {
            assert_eq!(room(open, wished), connections, "{open:?}");
        }
        assert_eq!(room(Some(40), 4), 4);
    }

    #[test]
    fn a_limit_that_is_high_enough_is_left_as_it_is() {
        assert_eq!(raised(Rlimit { current: Some(4096), maximum: Some(4096) }, 1000), Some(4096));
        assert_eq!(raised(Rlimit { current: None, maximum: None }, 1000), None);
    }
}
