//! An unreadable page in the older part of the database: every command that reads it prints a remedy, and the rest can be kept.

use super::kinds::Damage;
use super::sample_store::{Left, SampleStore};

/// The number of positions to try, until one is found that sled does not read when it opens the database.
const POSITIONS: u64 = 200;

#[tokio::test]
async fn an_unreadable_page_is_reported_with_a_remedy_and_the_rest_can_be_kept() {
    let store = SampleStore::prepare(240).await;
    let mut found = None;
    for position in 0..POSITIONS {
        let at = store.db_bytes() * (position * 89 % POSITIONS) / POSITIONS;
        let damaged = store.damaged(Left::Snapshotted, &Damage::Flip { at, bit: 3 });
        let verified = damaged.run(&["history", "verify", "--json"]).await;
        if verified.code == Some(1) && verified.stdout.contains("cannot be read") {
            found = Some((damaged, verified.object()));
            break;
        }
    }
    let (damaged, report) = found.expect("a page that cannot be read");

    assert_eq!(report["sound"], false);
    assert!(report["entries"].as_u64().is_some_and(|entries| entries > 0), "verify reads on after the page: {report}");
    for command in [&["backup", "copy.backup"][..], &["compact"], &["export", "--out", "all.json"]] {
        let refused = damaged.run(&[&["history"], command].concat()).await;
        // The page may belong to an index that an export does not read.
        if command[0] == "export" && refused.code == Some(0) {
            continue;
        }
        assert_eq!(refused.code, Some(3), "{refused:?}");
        let says = |words: &str| refused.stderr.contains(words);
        assert!(says("history restore") && says("--accept-loss") && !says("backtrace"), "{refused:?}");
    }

    let second = damaged.copied();
    let compacted = damaged.run(&["history", "compact", "--accept-loss", "--json"]).await;
    assert_eq!(compacted.code, Some(0), "{compacted:?}");
    assert!(compacted.object()["left_out"].as_u64().is_some_and(|pages| pages > 0), "{compacted:?}");
    let verified = damaged.run(&["history", "verify", "--json"]).await;
    assert_eq!((verified.code, verified.object()["events"].as_u64()), (Some(0), report["events"].as_u64()), "{verified:?}");
    assert_eq!(damaged.serve(&[]).await, Ok(()));
    assert_eq!(second.serve(&["serve", "--accept-loss"]).await, Ok(()));
    let verified = second.run(&["history", "verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
