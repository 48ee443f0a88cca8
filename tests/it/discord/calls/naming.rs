//! Everybody is heard under the own name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::counterpart::voice::Speaking;
use super::{Scene, sentence, spoken};

#[tokio::test]
async fn three_who_talk_at_once_are_named_whatever_the_server_says_of_who_speaks() {
    let scene = Scene::new().await;
    let Scene { home, harbour, .. } = &scene;
    let [ben, cleo] = ["Ben", "Cleo"].map(|name| home.discord.member(home.guild, name));
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;
    let voice = home.discord.voice();
    voice.set_speaking(*harbour, home.ana, Speaking::Names(ben));
    voice.set_speaking(*harbour, ben, Speaking::Missing);
    voice.set_speaking(*harbour, cleo, Speaking::Late(Duration::from_secs(1)));
    let ben = home.discord.call(ben, *harbour).await;
    let cleo = home.discord.call(cleo, *harbour).await;
    for person in [&ana, &ben, &cleo] {
        person.grouped(4).await;
    }
    // In any order.
    let mut entering = BTreeSet::from(["Ana", "Ben", "Cleo"]);
    while !entering.is_empty() {
        let event = watch.event("voice_joined").await;
        entering.remove(event["name"].as_str().expect("a name"));
    }

    // Each speaks for a different time. If the machine stalls, one person's speech may become several messages.
    let sentence = sentence();
    let parts = [&sentence[..], &sentence[..100], &sentence[..60]];
    tokio::join!(ana.talk(parts[0]), ben.talk(parts[1]), cleo.talk(parts[2]));

    let mut said = BTreeMap::from(["Ana", "Ben", "Cleo"].map(|name| (name.to_owned(), 0.0)));
    // They speak for 3.2, 2 and 1.2 s, including pauses.
    let is_all = |said: &BTreeMap<String, f64>| said["Ana"] > 2.2 && said["Ben"] > 1.2 && said["Cleo"] > 0.2;
    while !is_all(&said) {
        let spoken = spoken(&mut watch).await;
        let text = spoken["text"].as_str().expect("text");
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let seconds: f64 = text.split(|c| !is_part(c)).filter_map(|number| number.parse::<f64>().ok()).sum();
        *said.get_mut(spoken["from"].as_str().expect("a name")).expect("somebody in the call") += seconds;
    }
    assert!(said["Ana"] > said["Ben"] && said["Ben"] > said["Cleo"], "{said:?}");
}
