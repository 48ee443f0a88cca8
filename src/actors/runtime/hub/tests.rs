use super::*;
use crate::samples::channel_key;

#[tokio::test]
async fn a_watcher_receives_the_items_of_its_channel_only_and_in_order() {
    let hub = Hub::new();
    let mut watcher = hub.watch(Some(&channel_key("lobby")));

    hub.publish(&channel_key("lobby"), note("one"));
    hub.publish(&channel_key("attic"), note("elsewhere"));
    hub.publish(&channel_key("lobby"), note("two"));

    assert_eq!(next(&mut watcher).await, Ok(note("one")));
    assert_eq!(next(&mut watcher).await, Ok(note("two")));
}

#[tokio::test]
async fn a_channel_of_the_same_name_in_another_guild_is_another_channel() {
    let hub = Hub::new();
    let mut watcher = hub.watch(Some(&channel_key("lobby")));

    hub.publish(&ChannelKey::new(&"other".into(), &"lobby".into()), note("secret"));
    hub.publish(&channel_key("lobby"), note("open"));

    assert_eq!(next(&mut watcher).await, Ok(note("open")));
}

#[test]
fn a_channel_without_watchers_is_removed() {
    let hub = Hub::new();
    let (first, second) = (hub.watch(Some(&channel_key("lobby"))), hub.watch(Some(&channel_key("lobby"))));

    drop(first);
    let with_one_left = hub.is_watched(&channel_key("lobby"));
    drop(second);

    assert!(with_one_left);
    assert!(!hub.is_watched(&channel_key("lobby")));
    assert_eq!(hub.watched_count(), 0);
}

#[tokio::test]
async fn a_slow_watcher_is_told_how_much_it_missed() {
    let hub = Hub::new();
    let mut watcher = hub.watch(Some(&channel_key("lobby")));

    for _ in 0..BACKLOG + 3 {
        hub.publish(&channel_key("lobby"), note("again"));
    }

    assert_eq!(next(&mut watcher).await, Err(Missed(3)));
    assert_eq!(next(&mut watcher).await, Ok(note("again")));
}

#[tokio::test]
async fn a_watcher_of_all_channels_receives_the_items_of_each_in_order() {
    let hub = Hub::new();
    let mut total = hub.watch(None);

    hub.publish(&channel_key("lobby"), note("one"));
    hub.publish(&channel_key("attic"), note("two"));

    assert_eq!(total.next().await, Ok((channel_key("lobby"), note("one"))));
    assert_eq!(total.next().await, Ok((channel_key("attic"), note("two"))));
    assert!(hub.is_watched(&channel_key("cellar")));
    drop(total);
    assert!(!hub.is_watched(&channel_key("lobby")));
}

#[test]
fn each_new_watcher_of_a_channel_or_of_all_counts_as_the_newest() {
    let hub = Hub::new();
    let lobby = channel_key("lobby");
    let mut newest = vec![hub.newest_watcher(&lobby)];

    let _one = hub.watch(Some(&lobby));
    newest.push(hub.newest_watcher(&lobby));
    let _total = hub.watch(None);
    newest.push(hub.newest_watcher(&lobby));
    let _two = hub.watch(Some(&lobby));
    newest.push(hub.newest_watcher(&lobby));

    assert!(newest.is_sorted_by(|before, after| before < after), "{newest:?}");
}

async fn next(watcher: &mut Watcher) -> Result<Live, Missed> {
    watcher.next().await.map(|(_, item)| item)
}

fn note(text: &str) -> Live {
    Live::Note(text.into())
}
