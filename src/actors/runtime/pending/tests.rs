use super::*;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::encode;
use crate::journal::samples::store::TestStore;
use crate::ports::store::key::ChannelNo;

#[tokio::test(start_paused = true)]
async fn an_unreadable_ward_does_not_delay_the_others_and_is_read_once_it_can_be() {
    let store = TestStore::new();
    let wards: Vec<_> = (1..=4).map(Ward).collect();
    for ward in &wards {
        let record = ChannelRecord { guild: "home".into(), channel: format!("console:{}", ward.0).as_str().into() };
        store.put(key::channel_of(*ward, ChannelNo(7)), encode(&record));
        store.put(key::channel_name(&ChannelKey::new(&record.guild, &record.channel)), encode(&7));
        store.put(key::pending(*ward, ChannelNo(7)), encode(&7));
    }
    store.cannot_read([Ward(1), Ward(3)]);
    let mut found = Vec::new();

    read_wards(&store, wards, |ward, pending| {
        if ward == Ward(4) {
            store.cannot_read([Ward(3)]);
        } else if ward == Ward(1) {
            store.cannot_read([]);
        }
        found.push((ward.0, pending.channels[0].channel.to_string()));
    })
    .await;

    let expected = [2, 4, 1, 3].map(|ward| (ward, format!("console:{ward}")));
    assert_eq!(found, expected);
}
