//! Reads the companions again at SIGHUP, on a thread of its own: a folder that does not answer, such as a hung mount, holds up nothing else.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use crate::actors::runtime::context::ActorContext;
use crate::actors::service::rooms::reload_companions;
use crate::domain::id::CompanionId;
use crate::settings::companion::Companion;
use crate::settings::{self, Sources};

/// Reading the settings may take this long.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// Reads the companions again whenever the signal comes, without end. Signals that come meanwhile are one, and are followed afterwards.
pub(super) async fn at_each(hang_up: &mut watch::Receiver<()>, context: &ActorContext, sources: &Sources) {
    let reader = Reader::default();
    while hang_up.changed().await.is_ok() {
        let sources = sources.clone();
        match reader.read(move || settings::load(&sources)).await {
            Ok(Ok(loaded)) => take(context, loaded.companions),
            Ok(Err(problems)) => {
                // A line each, and quoted: files may hold what somebody else wrote.
                for problem in &problems.0 {
                    let problem = problem.to_string();
                    tracing::error!(problem, "the settings have errors; nothing was changed");
                }
            }
            Err(error) => tracing::error!(%error, "the settings cannot be read; nothing was changed"),
        }
    }
}

fn take(context: &ActorContext, companions: BTreeMap<CompanionId, Companion>) {
    // Models are read at the start alone.
    let has_models =
        |companion: &&Companion| [&companion.model.main, &companion.model.side].iter().all(|name| context.pool.has(name));
    if let Some(companion) = companions.values().find(|companion| !has_models(companion)) {
        tracing::error!(
            companion = %companion.id,
            "a companion names a model that was not in the settings when the server started; nothing was changed, start it again"
        );
        return;
    }
    match reload_companions(context, companions) {
        Ok(()) => tracing::info!(companions = context.memberships.companions().len(), "companions were read again"),
        Err(error) => tracing::error!(%error, "these companions cannot be taken; nothing was changed"),
    }
}

/// Reads on a thread of its own, one reading at a time.
struct Reader {
    free: Arc<Semaphore>,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
enum NotRead {
    #[error(
        "reading took more than {} seconds and was given up; look whether the folder of settings, or what it is mounted from, answers, and \
         send SIGHUP again",
        READ_WITHIN.as_secs()
    )]
    TooSlow,
    #[error(
        "the last reading still waits for the folder of settings; look what it is mounted from, and send SIGHUP again once it answers"
    )]
    StillReading,
    #[error("reading panicked; the log says where")]
    Panicked,
    #[error("no thread can be started: {0}; send SIGHUP again")]
    NoThread(#[from] io::Error),
}

impl Default for Reader {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(1)) }
    }
}

impl Reader {
    /// What `read` returns, if it does so in time. A thread that hangs cannot be ended: it is left alone, and nothing else is read as long as
    /// it is there.
    async fn read<T: Send + 'static>(&self, read: impl FnOnce() -> T + Send + 'static) -> Result<T, NotRead> {
        let place = self.free.clone().try_acquire_owned().map_err(|_| NotRead::StillReading)?;
        let (tell, told) = oneshot::channel();
        // Not of the runtime's own threads, which are waited for at its end.
        thread::Builder::new().name("settings".into()).spawn(move || {
            let outcome = read();
            drop::<OwnedSemaphorePermit>(place);
            // Nobody waits any more if it took too long.
            let _ = tell.send(outcome);
        })?;
        match tokio::time::timeout(READ_WITHIN, told).await {
            Ok(outcome) => outcome.map_err(|_| NotRead::Panicked),
            Err(_) => Err(NotRead::TooSlow),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reading_that_hangs_is_given_up_and_is_the_only_one_until_it_ends() {
        let reader = Reader::default();
        let (answer, hung) = mpsc::channel::<u8>();
        let (ended, told) = oneshot::channel();

        let first = reader
            .read(move || {
                let answer = hung.recv();
                drop(ended);
                answer
            })
            .await;
        let second = reader.read(|| 2).await;

        assert!(matches!(first, Err(NotRead::TooSlow)), "{first:?}");
        assert!(matches!(second, Err(NotRead::StillReading)), "{second:?}");
        answer.send(1).unwrap();
        // Its thread goes on to its end.
        let _ = told.await as Result<(), _>;
        let _free = reader.free.acquire().await.unwrap();
    }

    #[tokio::test]
    async fn what_is_read_in_time_is_returned() {
        let reader = Reader::default();

        assert_eq!((reader.read(|| 1).await.unwrap(), reader.read(|| 2).await.unwrap()), (1, 2));
    }
}
