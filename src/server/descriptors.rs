//! Limits the connections according to the limit on open files, so that the store never lacks a file descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors that are reserved for the store, the models, the platforms and the log.
const RESERVED: u64 = 64;
/// The smallest number of allowed connections, so that an operator can always connect.
const MIN_CONNECTIONS: usize = 8;

/// The smallest limit on open files with which a server can start. The store, the runtime and the log take about half of these.
const MIN_FILES: u64 = 32;

/// The limit on open files is too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} files may be open at once (`ulimit -n`), and a server needs at least {MIN_FILES}: raise the limit (in a systemd service, \
     LimitNOFILE)"
)]
pub(super) struct TooFewFiles(u64);

/// Whether the limit on open files allows a server to start.
pub(super) fn are_enough() -> bool {
    getrlimit(Resource::Nofile).current.is_none_or(|files| files >= MIN_FILES)
}

/// Raises the limit as far as needed and allowed. Returns the number of allowed connections: the wanted number, or as many as the limit allows.
///
/// # Errors
/// Returns an error if the limit is below the minimum.
pub(super) fn connections(wanted: usize) -> Result<usize, TooFewFiles> {
    let limit = getrlimit(Resource::Nofile);
    let enough = wanted as u64 + RESERVED;
    let open = raised(limit, enough);
    if let Some(files) = open.filter(|files| *files < MIN_FILES) {
        return Err(TooFewFiles(files));
    }
    let connections = room(open, wanted);
    if connections < wanted {
        let files = open.unwrap_or_default();
        tracing::warn!(
            files,
            connections,
            "the limit on open files (`ulimit -n`) leaves no room for server.max_connections: raise it"
        );
    }
    Ok(connections)
}

/// The limit from now on. `None` if there is no limit.
fn raised(limit: Rlimit, enough: u64) -> Option<u64> {
    let current = limit.current?;
    let target = limit.maximum.map_or(enough, |most| most.min(enough));
    if target <= current {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum: limit.maximum }) {
        Ok(()) => Some(target),
        Err(_) => Some(current),
    }
}

fn room(open: Option<u64>, wanted: usize) -> usize {
    let Some(open) = open else { return wanted };
    let left = usize::try_from(open.saturating_sub(RESERVED)).unwrap_or(usize::MAX);
    left.max(MIN_CONNECTIONS).min(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_the_store() {
        for (open, wanted, connections) in
            [(None, 1024, 1024), (Some(65_536), 1024, 1024), (Some(256), 1024, 192), (Some(40), 1024, 8)]
        {
            assert_eq!(room(open, wanted), connections, "{open:?}");
        }
        assert_eq!(room(Some(40), 4), 4);
    }

    #[test]
    fn a_limit_that_is_high_enough_is_not_changed() {
        assert_eq!(raised(Rlimit { current: Some(4096), maximum: Some(4096) }, 1000), Some(4096));
        assert_eq!(raised(Rlimit { current: None, maximum: None }, 1000), None);
    }
}
