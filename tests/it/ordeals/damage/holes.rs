//! A page in the older part of the database that cannot be read: whoever comes to it is told what to do, and the rest can be kept.

use super::kinds::Damage;
use super::model_home::{Left, ModelHome};

/// Places that are tried until one is met that sled does not look at when it opens the database.
const PLACES: u64 = 200;

#[tokio::test]
async fn where_a_page_cannot_be_read_everybody_is_told_what_to_do_and_the_rest_can_be_kept() {
    let home = ModelHome::furnish(240).await;
    let mut met = None;
    for place in 0..PLACES {
        let at = home.db_bytes() * (place * 89 % PLACES) / PLACES;
        let damaged = home.damaged(Left::Noted, &Damage::Flip { at, bit: 3 });
        let verified = damaged.run(&["history", "verify", "--json"]).await;
        if verified.code == Some(1) && verified.stdout.contains("cannot be read") {
            met = Some((damaged, verified.object()));
            break;
        }
    }
    let (damaged, report) = met.expect("a page that cannot be read");

    assert_eq!(report["sound"], false);
    assert!(report["entries"].as_u64().is_some_and(|entries| entries > 0), "it was read on: {report}");
    for command in [&["backup", "copy.backup"][..], &["compact"], &["export", "--out", "all.json"]] {
        let refused = damaged.run(&[&["history"], command].concat()).await;
        // An index that nobody is asked about may lie there.
        if command[0] == "export" && refused.code == Some(0) {
            continue;
        }
        assert_eq!(refused.code, Some(3), "{refused:?}");
        let says = |words: &str| refused.stderr.contains(words);
        assert!(says("history restore") && says("--accept-loss") && !says("backtrace"), "{refused:?}");
    }

    let second = damaged.copied();
    let kept = damaged.run(&["history", "compact", "--accept-loss", "--json"]).await;
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert!(kept.object()["left_out"].as_u64().is_some_and(|holes| holes > 0), "{kept:?}");
    let sound = damaged.run(&["history", "verify", "--json"]).await;
    assert_eq!((sound.code, sound.object()["events"].as_u64()), (Some(0), report["events"].as_u64()), "{sound:?}");
    assert_eq!(damaged.serve(&[]).await, Ok(()));
    assert_eq!(second.serve(&["serve", "--accept-loss"]).await, Ok(()));
    let sound = second.run(&["history", "verify"]).await;
    assert_eq!(sound.code, Some(0), "{sound:?}");
}
