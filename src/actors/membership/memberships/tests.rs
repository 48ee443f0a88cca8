use super::*;
use crate::domain::moment::Moment;
use crate::settings::Settings;

#[test]
fn a_companion_lives_in_a_guild_as_long_as_it_lives_in_one_of_its_channels() {
    let memberships = memberships(&[("aria", &["ari"]), ("bruno", &[])]);
    memberships.put(&"one".into(), membership("home", &["aria"])).unwrap();
    memberships.put(&"two".into(), membership("home", &["aria", "bruno"])).unwrap();

    memberships.take(&"one".into());
    assert!(memberships.lives_in(&"home".into(), "aria"));

    memberships.put(&"two".into(), membership("home", &["bruno"])).unwrap();
    assert!(!memberships.lives_in(&"home".into(), "aria"));
    assert!(memberships.lives_in(&"home".into(), "bruno"));
    assert!(!memberships.lives_in(&"away".into(), "bruno"));
    assert_eq!(memberships.names(&"home".into()).unwrap().find("ari and bruno"), ["bruno".into()]);
}

#[test]
fn two_who_share_a_name_cannot_live_in_one_guild_and_nothing_changes() {
    let memberships = memberships(&[("aria", &["ari"]), ("ariel", &["Ari"])]);
    memberships.put(&"one".into(), membership("home", &["aria"])).unwrap();
    memberships.put(&"far".into(), membership("away", &["ariel"])).unwrap();

    let shared = memberships.put(&"two".into(), membership("home", &["ariel"])).unwrap_err();

    assert_eq!((shared.first.as_str(), shared.second.as_str()), ("aria", "ariel"));
    assert_eq!(memberships.get(&"two".into()), None);
    assert!(!memberships.lives_in(&"home".into(), "ariel"));
}

#[test]
fn a_new_cast_that_would_share_a_name_is_not_taken() {
    let memberships = memberships(&[("aria", &[]), ("bruno", &[])]);
    memberships.put(&"one".into(), membership("home", &["aria", "bruno"])).unwrap();
    let edition = memberships.edition();

    memberships.reload_companions(cast(&[("aria", &["ari"]), ("bruno", &["ari"])])).unwrap_err();
    assert_eq!(memberships.companions()[&CompanionId::from("aria")].aliases.len(), 0);

    memberships.reload_companions(cast(&[("aria", &["ari"]), ("bruno", &[])])).unwrap();
    assert_eq!(memberships.names(&"home".into()).unwrap().find("ari?"), ["aria".into()]);
    assert_ne!(memberships.edition(), edition);
}

#[test]
fn guilds_with_the_same_companions_share_what_looks_for_their_names() {
    let memberships = memberships(&[("aria", &["ari"]), ("bruno", &[])]);
    memberships.put(&"one".into(), membership("home", &["aria", "bruno"])).unwrap();
    memberships.put(&"two".into(), membership("away", &["aria"])).unwrap();
    assert!(!share(&memberships, "home", "away"));

    memberships.put(&"three".into(), membership("away", &["bruno"])).unwrap();
    assert!(share(&memberships, "home", "away"));

    memberships.reload_companions(cast(&[("aria", &["aria mia"]), ("bruno", &[])])).unwrap();
    assert!(share(&memberships, "home", "away"));
    assert_eq!(memberships.names(&"away".into()).unwrap().find("aria mia, not ari"), ["aria".into()]);
    assert_eq!(memberships.names(&"away".into()).unwrap().find("ari"), []);
}

#[test]
fn a_guild_whose_companions_change_has_its_own_names_and_leaves_the_others_theirs() {
    let memberships = memberships(&[("aria", &[]), ("bruno", &[])]);
    memberships.put(&"one".into(), membership("home", &["aria", "bruno"])).unwrap();
    memberships.put(&"two".into(), membership("away", &["aria", "bruno"])).unwrap();
    let found = |guild: &str| memberships.names(&guild.into()).unwrap().find("aria, bruno and zed").len();

    memberships.put(&"two".into(), membership("away", &["aria"])).unwrap();
    assert!(!share(&memberships, "home", "away"));
    assert_eq!((found("home"), found("away")), (2, 1));

    memberships.take(&"one".into());
    memberships.put(&"one".into(), with_external("zed", External::default())).unwrap();
    assert!(!share(&memberships, "home", "away"));
    assert_eq!((found("home"), found("away")), (2, 1), "aria and zed, and aria");
}

#[test]
fn guilds_in_which_programs_outside_play_the_same_companion_under_other_names_share_nothing() {
    let memberships = memberships(&[("aria", &[])]);
    let of = |guild: &str, name: &str| {
        let zed = External { name: Some(name.into()), aliases: Vec::new() };
        Membership { guild: guild.into(), ..with_external("zed", zed) }
    };
    memberships.put(&"one".into(), of("home", "Zoltan")).unwrap();
    memberships.put(&"two".into(), of("away", "Zora")).unwrap();

    assert!(!share(&memberships, "home", "away"));
    assert_eq!(memberships.names(&"home".into()).unwrap().find("zora and zoltan"), ["zed".into()]);
    assert_eq!(memberships.names(&"away".into()).unwrap().find("zoltan"), []);
}

#[test]
fn names_that_no_guild_has_any_more_are_forgotten() {
    let ids: Vec<_> = (0..40).map(|number| format!("c{number}")).collect();
    let named: Vec<(&str, &[&str])> = ids.iter().map(|id| (id.as_str(), [].as_slice())).collect();
    let memberships = memberships(&named);

    for id in &ids {
        memberships.put(&"one".into(), membership("home", &[id])).unwrap();
    }

    let known = memberships.read().name_sets.known.len();
    assert!(known < 10, "{known} are known");
}

#[test]
fn an_external_companion_lives_under_its_names_and_is_what_the_defaults_say() {
    let memberships = memberships(&[("aria", &["ari"])]);
    let zed = External { name: None, aliases: vec!["zeddy".into()] };

    memberships.put(&"one".into(), with_external("zed", zed.clone())).unwrap();

    assert!(memberships.lives_in(&"home".into(), "zed"));
    assert_eq!(memberships.names(&"home".into()).unwrap().find("ari and zeddy"), ["aria".into(), "zed".into()]);
    assert_eq!(memberships.policies(&"one".into()).len(), 2);
    assert!(memberships.present(&"one".into())[&CompanionId::from("zed")]);
    assert_eq!(&*memberships.companion(&"one".into(), &"zed".into()).unwrap().name, "Zed");
    assert_eq!(memberships.companion(&"two".into(), &"zed".into()), None);
}

#[test]
fn an_external_companion_shares_no_name_with_anybody_in_any_room_of_its_guild() {
    let memberships = memberships(&[("aria", &["ari"])]);
    memberships.put(&"one".into(), membership("home", &["aria"])).unwrap();
    let named = |name: &str| External { name: Some(name.into()), aliases: Vec::new() };
    memberships.put(&"two".into(), with_external("zed", named("Zed"))).unwrap();

    memberships.put(&"two".into(), with_external("zed", named("ARI"))).unwrap_err();
    memberships.put(&"two".into(), with_external("zed", named("Zoltan"))).unwrap();

    assert_eq!(memberships.names(&"home".into()).unwrap().find("zoltan"), ["zed".into()]);
    memberships.put(&"two".into(), membership("home", &["aria"])).unwrap();
    assert_eq!(memberships.names(&"home".into()).unwrap().find("zoltan"), []);
    assert!(!memberships.lives_in(&"home".into(), "zed"));
}

#[test]
fn a_companion_that_is_played_from_outside_is_not_configured_besides() {
    let memberships = memberships(&[("aria", &[])]);
    memberships.put(&"one".into(), with_external("zed", External::default())).unwrap();

    let refused = memberships.reload_companions(cast(&[("aria", &[]), ("zed", &[])])).unwrap_err();

    assert!(matches!(refused, ReloadError::External { companion, .. } if companion.as_str() == "zed"));
    assert!(!memberships.companions().contains_key(&CompanionId::from("zed")));
}

/// Whether what looks for names is the same in two guilds.
fn share(memberships: &Memberships, one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|guild| memberships.names(&guild.into()).unwrap());
    Arc::ptr_eq(&one, &other)
}

fn memberships(companions: &[(&str, &[&str])]) -> Memberships {
    let defaults = Settings::overlay(serde_json::json!({})).unwrap().companion_defaults;
    Memberships::new(cast(companions), defaults, Instruments::noop())
}

fn with_external(id: &str, external: External) -> Membership {
    let mut membership = membership("home", &["aria", id]);
    membership.externals.insert(id.into(), external);
    membership
}

fn cast(companions: &[(&str, &[&str])]) -> CompanionSet {
    let defaults = Settings::overlay(serde_json::json!({})).unwrap().companion_defaults;
    let companion = |(id, aliases): &(&str, &[&str])| {
        let aliases = aliases.iter().map(|alias| Arc::from(*alias)).collect();
        let file = CompanionFile { id: Some((*id).into()), aliases: Some(aliases), ..CompanionFile::default() };
        (CompanionId::from(*id), Companion::from_file(file, None, &defaults).unwrap())
    };
    companions.iter().map(companion).collect()
}

fn membership(guild: &str, companions: &[&str]) -> Membership {
    Membership {
        companions: companions.iter().map(|id| CompanionId::from(*id)).collect(),
        ..Membership::empty(guild.into(), Moment::ZERO)
    }
}
