//! Everybody is heard under the own name.

use std::collections::BTreeSet;
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

    // Nobody says as much as another.
    let sentence = sentence();
    let parts = [&sentence[..], &sentence[..140], &sentence[..100]];
    tokio::join!(ana.talk(parts[0]), ben.talk(parts[1]), cleo.talk(parts[2]));

    let mut said = Vec::new();
    for _ in 0..3 {
        let spoken = spoken(&mut watch).await;
        let seconds =
            spoken["text"].as_str().and_then(|text| text.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().ok());
        said.push((seconds.expect("seconds"), spoken["from"].as_str().expect("a name").to_owned()));
    }
    said.sort_by(|one, other| one.0.total_cmp(&other.0));
    let names: Vec<_> = said.iter().map(|(_, name)| &**name).collect();
    assert_eq!(names, ["Cleo", "Ben", "Ana"], "{said:?}");
}
