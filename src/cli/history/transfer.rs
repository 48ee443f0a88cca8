//! `tertulia history copy`: moves the store to another engine.

use indicatif::ProgressStyle;
use serde_json::json;

use super::progress;
use crate::adapters::store::Identity;
use crate::adapters::store::sled::{self, OpenOptions};
use crate::adapters::store::transfer::{self, Step, TransferError};
use crate::cli::access;
use crate::cli::client::block_on;
use crate::cli::command_io::report;
use crate::cli::failure::Failure;
use crate::ports::store::StoreError;
use crate::server::offline::open_options;
use crate::server::{check_folder, holds_a_store, is_half_copied, is_moved_folder, note_copying, note_moved_folder, open_engine};
use crate::settings::Loaded;
use crate::settings::storage::Engine;

/// Copies the store of one engine into the empty store of the other, and checks the copy.
pub(super) fn copy(loaded: &Loaded, from: Engine, to: Engine, json: bool) -> Result<(), Failure> {
    if from == to {
        return Err(Failure::Usage("--from and --to name the same store: name two".into()));
    }
    let storage = &loaded.settings.storage;
    let data = &storage.path;
    access::require_offline(data, "copy")?;
    if from == Engine::Sled && !holds_a_store(data) {
        return Err(Failure::Store(format!(
            "there is no store in {}: set storage.path or --config as for the server",
            data.display()
        )));
    }
    // Both stores lock the folder.
    let held = Some(sled::lock(data).map_err(|error| Failure::Store(error.to_string()))?);
    let open = |engine: Engine| {
        let options = OpenOptions { held: held.clone(), ..open_options() };
        open_engine(engine, storage, &options, &Identity::command())
    };
    let in_folder = |error: std::io::Error| Failure::Store(format!("{}: {error}", data.display()));
    let failed = |error: TransferError| Failure::Store(error.to_string());
    let copied = match to {
        Engine::Postgres => {
            let target = open(to)?.store();
            // An interrupted copy is finished even if the files were already marked as moved.
            if is_half_copied(data) || !block_on(async { Ok(transfer::is_unfinished(&*target).await) })?.map_err(unreadable)? {
                check_folder(data).map_err(Failure::Store)?;
            }
            // This comes first, so that no server starts on the empty target meanwhile.
            block_on(async { Ok(transfer::begin(&*target).await) })?.map_err(|error| match error {
                TransferError::NotEmpty => Failure::Store(format!("the database of storage.url or storage.url_file: {error}")),
                error => failed(error),
            })?;
            let source = open(from)?.store();
            let copied = block_on(async { transfer::copy(&*source, &*target, shown()).await.map_err(failed) })?;
            note_moved_folder(data).map_err(in_folder)?;
            block_on(async { transfer::finish(&*target).await.map_err(failed) })?;
            copied
        }
        Engine::Sled => {
            let is_half = is_half_copied(data);
            if !is_half && (holds_a_store(data) || is_moved_folder(data)) {
                return Err(Failure::Store(format!(
                    "there is a store in {} already: set storage.path to an empty folder for the copy; nothing was changed",
                    data.display()
                )));
            }
            let source = open(from)?;
            // A running node would continue to write to the source.
            block_on(async { source.own().await.map_err(|owner| Failure::Store(format!("{owner}; stop it first"))) })?;
            let source = source.store();
            if block_on(async { Ok(transfer::is_unfinished(&*source).await) })?.map_err(unreadable)? {
                return Err(Failure::Store(
                    "the store in the database is half a copy itself: give the command again that made it, which finishes it"
                        .to_owned(),
                ));
            }
            if !is_half && block_on(async { Ok(transfer::is_moved(&*source).await) })?.map_err(unreadable)? {
                return Err(Failure::Store(
                    "the store in the database was moved to files with `tertulia history copy` already: copy those files instead"
                        .to_owned(),
                ));
            }
            note_copying(data, true).map_err(in_folder)?;
            sled::discard(data).map_err(in_folder)?;
            let target = open(to)?.store();
            let copied = block_on(async { transfer::copy(&*source, &*target, shown()).await.map_err(failed) })?;
            block_on(async {
                transfer::note_moved(&*source).await.map_err(failed)?;
                transfer::finish(&*target).await.map_err(failed)
            })?;
            note_copying(data, false).map_err(in_folder)?;
            copied
        }
    };
    let object = json!({ "entries": copied.records, "bytes": copied.bytes, "sha256": copied.sha256 });
    let sentence = format!(
        "copied and checked: {} records, {} bytes, SHA-256 {}; now set storage.engine = \"{to}\", and never start a server on the old store again",
        copied.records, copied.bytes, copied.sha256
    );
    report(json, &object, &sentence)
}

fn unreadable(error: StoreError) -> Failure {
    Failure::Store(error.to_string())
}

/// Shows the current step and its progress.
fn shown() -> impl FnMut(Step, u64, Option<u64>) {
    let bar = progress("counting");
    move |step, done, all| {
        if let Some(all) = all
            && bar.length() != Some(all)
            && let Ok(style) =
                ProgressStyle::with_template("{spinner} {msg}: {bar:30} {percent} %, {pos} of {len} records, {elapsed}")
        {
            bar.set_length(all);
            bar.set_style(style);
        }
        bar.set_message(match step {
            Step::Counting => "counting",
            Step::Copying => "copying",
            Step::Checking => "checking",
        });
        bar.set_position(done);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::adapters::store::postgres::test_server::TestServer;
    use crate::domain::id::{Seq, Ward};
    use crate::ports::store::key::{ChannelNo, Key, Kind};
    use crate::ports::store::{Append, Batch, Store, Write};
    use crate::settings::{Sources, load};

    fn opened(loaded: &Loaded, engine: Engine) -> Arc<dyn Store> {
        open_engine(engine, &loaded.settings.storage, &open_options(), &Identity::command()).unwrap().store()
    }

    #[test]
    fn a_store_goes_to_postgres_and_comes_back_as_it_was() {
        let Some(server) = TestServer::shared() else { return };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (data, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut loaded =
            load(&Sources { folder: data.path().join("none"), folder_was_named: false, profile: None, environment: Vec::new() })
                .unwrap();
        loaded.settings.storage.path = data.path().into();
        loaded.settings.storage.url = Some(runtime.block_on(server.empty()));
        let (ward, channel) = (Ward(9), ChannelNo(1));
        let records: Vec<_> = (0..1_200_u32).map(|number| number.to_be_bytes().to_vec()).collect();
        let store = opened(&loaded, Engine::Sled);
        runtime.block_on(async {
            let term = store.acquire_ward(ward).await.unwrap();
            let append = Append { channel, after: Seq::NONE, records: records.clone() };
            let batch = Batch { ward, term, append: Some(append), fresh: Vec::new(), writes: Vec::new() };
            assert_eq!(store.commit(vec![batch]).await.unwrap(), [Ok(())]);
        });
        drop(store);

        copy(&loaded, Engine::Sled, Engine::Postgres, true).unwrap();
        let moved = copy(&loaded, Engine::Sled, Engine::Postgres, true).unwrap_err();
        // Killed after the files were marked.
        let target = opened(&loaded, Engine::Postgres);
        runtime.block_on(async {
            let term = target.acquire_ward(Ward(0)).await.unwrap();
            let mark = Write::Put(transfer::mark_key(), Vec::new());
            let batch = Batch { ward: Ward(0), term, append: None, fresh: Vec::new(), writes: vec![mark] };
            assert_eq!(target.commit(vec![batch]).await.unwrap(), [Ok(())]);
        });
        drop(target);
        copy(&loaded, Engine::Sled, Engine::Postgres, true).unwrap();
        std::fs::remove_file(data.path().join("moved")).unwrap();
        let again = copy(&loaded, Engine::Sled, Engine::Postgres, true).unwrap_err();
        let owner = opened(&loaded, Engine::Postgres);
        runtime.block_on(owner.acquire_ward(ward)).unwrap();
        loaded.settings.storage.path = back.path().into();
        let owned = copy(&loaded, Engine::Postgres, Engine::Sled, true).unwrap_err();
        drop(owner);
        copy(&loaded, Engine::Postgres, Engine::Sled, true).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        loaded.settings.storage.path = elsewhere.path().into();
        let twice = copy(&loaded, Engine::Postgres, Engine::Sled, true).unwrap_err();
        // Killed before the last mark was removed.
        loaded.settings.storage.path = back.path().into();
        note_copying(back.path(), true).unwrap();
        assert!(check_folder(back.path()).unwrap_err().contains("is half a copy"));
        copy(&loaded, Engine::Postgres, Engine::Sled, true).unwrap();

        assert!(twice.to_string().contains("was moved to files"), "{twice}");
        assert!(check_folder(back.path()).is_ok());
        assert!(runtime.block_on(transfer::is_moved(&*opened(&loaded, Engine::Postgres))).unwrap());
        assert!(again.to_string().contains("has records already"), "{again}");
        let store = opened(&loaded, Engine::Sled);
        let journal = Key::new(ward, Kind::Journal).channel(channel);
        let found = runtime.block_on(store.scan(journal.clone(), journal.end(), false, usize::MAX)).unwrap();
        assert_eq!(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), records);
        assert!(moved.to_string().contains("was moved to PostgreSQL"), "{moved}");
        assert!(owned.to_string().contains("owns the store; stop it first"), "{owned}");
        drop(store);
        let store = sled::SledStore::open(back.path(), &open_options()).unwrap();
        let read = store.verify((), |_| ()).unwrap();
        assert!(read.is_sound() && read.counts.events == 1_200, "{read:?}");
    }
}
