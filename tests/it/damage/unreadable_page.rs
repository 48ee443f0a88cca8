//! An unreadable page in the database: every command that reads it prints a remedy, and the rest can be kept.

use super::kinds::Damage;
use super::sample_store::{Left, SampleStore};

/// The number of positions to try, until one is found in a page that sled does not read when it opens the database.
const POSITIONS: u64 = 200;

/// Each command reports it with a remedy, and the rest can be kept.
pub async fn assert_reported(store: &SampleStore) {
    let mut found = None;
    for position in 0..POSITIONS {
        let at = store.db_bytes() * (position * 89 % POSITIONS) / POSITIONS;
        let damaged = store.damaged(Left::Snapshotted, &Damage::Flip { at, bit: 3 }).expect("a byte");
        let rest = damaged.copied();
        let compacted = rest.run(&["history", "compact", "--accept-loss", "--json"]).await;
        if compacted.code == Some(0) && compacted.object()["left_out"].as_u64().is_some_and(|pages| pages > 0) {
            found = Some((damaged, rest));
            break;
        }
    }
    let (damaged, rest) = found.expect("a page that cannot be read");

    let refused = damaged.run(&["history", "verify", "--json"]).await;
    assert_eq!((refused.code, &refused.object()["sound"]), (Some(3), &false.into()), "{refused:?}");
    for command in [
        &["history", "backup", "copy.backup"][..],
        &["history", "compact"],
        &["history", "export", "--out", "all.json"],
        &["serve"],
    ] {
        let refused = damaged.run(command).await.exits_with(3);
        let says = |words: &str| refused.stderr.contains(words);
        assert!(says("`store/db` has changed") && says("history restore") && says("--accept-loss"), "{refused:?}");
    }
    let verified = rest.run(&["history", "verify", "--json"]).await;
    assert_eq!((verified.code, &verified.object()["sound"]), (Some(0), &true.into()), "{verified:?}");
    assert_eq!(rest.serve(&[]).await, Ok(()));
    assert_eq!(damaged.serve(&["serve", "--accept-loss"]).await, Ok(()));
    damaged.run(&["history", "verify"]).await.exits_with(0);
}
