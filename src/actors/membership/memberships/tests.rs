use super::*;
use crate::domain::moment::Moment;
use crate::samples;
use serde_json::json;

#[test]
fn a_companion_is_in_a_guild_while_it_is_a_member_of_one_of_its_channels() {
    let memberships = memberships(&[("aria", &["ari"]), ("bruno", &[])]);
    memberships.put(&"one".into(), membership("home", &["aria"])).unwrap();
    memberships.put(&"two".into(), membership("home", &["aria", "bruno"])).unwrap();

    memberships.remove(&"one".into());
    assert!(memberships.is_in_guild(&"home".into(), "aria"));

    memberships.put(&"two".into(), membership("home", &["bruno"])).unwrap();
    assert!(!memberships.is_in_guild(&"home".into(), "aria"));
    assert!(memberships.is_in_guild(&"home".into(), "bruno"));
    assert!(!memberships.is_in_guild(&"away".into(), "bruno"));
    assert_eq!(memberships.names(&"home".into()).unwrap().find("ari and bruno"), ["bruno".into()]);
}

#[test]
fn two_companions_that_share_a_name_are_rejected_in_one_guild_and_nothing_changes() {
    let memberships = memberships(&[("aria", &["ari"]), ("ariel", &["Ari"])]);
    memberships.put(&"one".into(), membership("home", &["aria"])).unwrap();
    memberships.put(&"far".into(), membership("away", &["ariel"])).unwrap();

    let shared = memberships.put(&"two".into(), membership("home", &["ariel"])).unwrap_err();

    assert_eq!((shared.first.as_str(), shared.second.as_str()), ("aria", "ariel"));
    assert_eq!(memberships.get(&"two".into()), None);
    assert!(!memberships.is_in_guild(&"home".into(), "ariel"));
}

#[test]
fn configured_companions_that_would_share_a_name_are_rejected() {
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
fn guilds_with_the_same_companions_share_their_name_matcher() {
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
fn a_guild_whose_companions_change_gets_its_own_names_and_others_keep_theirs() {
    let memberships = memberships(&[("aria", &[]), ("bruno", &[])]);
    memberships.put(&"one".into(), membership("home", &["aria", "bruno"])).unwrap();
    memberships.put(&"two".into(), membership("away", &["aria", "bruno"])).unwrap();
    let found = |guild: &str| memberships.names(&guild.into()).unwrap().find("aria, bruno and zed").len();

    memberships.put(&"two".into(), membership("away", &["aria"])).unwrap();
    assert!(!share(&memberships, "home", "away"));
    assert_eq!((found("home"), found("away")), (2, 1));

    memberships.remove(&"one".into());
    memberships.put(&"one".into(), with_external("zed", External::default())).unwrap();
    assert!(!share(&memberships, "home", "away"));
    assert_eq!((found("home"), found("away")), (2, 1), "aria and zed, and aria");
}

#[test]
fn guilds_with_the_same_external_companion_under_different_names_share_nothing() {
    let memberships = memberships(&[("aria", &[])]);
    let membership_of = |guild: &str, name: &str| {
        let zed = External { name: Some(name.into()), aliases: Vec::new() };
        Membership { guild: guild.into(), ..with_external("zed", zed) }
    };
    memberships.put(&"one".into(), membership_of("home", "Zoltan")).unwrap();
    memberships.put(&"two".into(), membership_of("away", "Zora")).unwrap();

    assert!(!share(&memberships, "home", "away"));
    assert_eq!(memberships.names(&"home".into()).unwrap().find("zora and zoltan"), ["zed".into()]);
    assert_eq!(memberships.names(&"away".into()).unwrap().find("zoltan"), []);
}

#[test]
fn name_matchers_that_no_guild_uses_are_removed() {
    let ids: Vec<_> = (0..40).map(|number| format!("c{number}")).collect();
    let named: Vec<(&str, &[&str])> = ids.iter().map(|id| (id.as_str(), [].as_slice())).collect();
    let memberships = memberships(&named);

    for id in &ids {
        memberships.put(&"one".into(), membership("home", &[id])).unwrap();
    }

    let known = memberships.0.register.read().name_sets.matchers.len();
    assert!(known < 10, "{known} are stored");
}

#[test]
fn an_external_companion_has_its_own_names_and_the_default_settings() {
    let memberships = memberships(&[("aria", &["ari"])]);
    let zed = External { name: None, aliases: vec!["zeddy".into()] };

    memberships.put(&"one".into(), with_external("zed", zed.clone())).unwrap();

    assert!(memberships.is_in_guild(&"home".into(), "zed"));
    assert_eq!(memberships.names(&"home".into()).unwrap().find("ari and zeddy"), ["aria".into(), "zed".into()]);
    assert_eq!(memberships.policies(&"one".into()).len(), 2);
    assert!(memberships.present(&"one".into())[&CompanionId::from("zed")]);
    assert_eq!(&*memberships.companion(&"one".into(), &"zed".into()).unwrap().name, "Zed");
    assert_eq!(memberships.companion(&"two".into(), &"zed".into()), None);
}

#[test]
fn an_external_companion_may_not_share_a_name_with_others_in_its_guild() {
    let memberships = memberships(&[("aria", &["ari"])]);
    memberships.put(&"one".into(), membership("home", &["aria"])).unwrap();
    let named = |name: &str| External { name: Some(name.into()), aliases: Vec::new() };
    memberships.put(&"two".into(), with_external("zed", named("Zed"))).unwrap();

    memberships.put(&"two".into(), with_external("zed", named("ARI"))).unwrap_err();
    memberships.put(&"two".into(), with_external("zed", named("Zoltan"))).unwrap();

    assert_eq!(memberships.names(&"home".into()).unwrap().find("zoltan"), ["zed".into()]);
    memberships.put(&"two".into(), membership("home", &["aria"])).unwrap();
    assert_eq!(memberships.names(&"home".into()).unwrap().find("zoltan"), []);
    assert!(!memberships.is_in_guild(&"home".into(), "zed"));
}

#[test]
fn a_companion_that_is_external_in_a_room_cannot_be_configured() {
    let memberships = memberships(&[("aria", &[])]);
    memberships.put(&"one".into(), with_external("zed", External::default())).unwrap();

    let refused = memberships.reload_companions(cast(&[("aria", &[]), ("zed", &[])])).unwrap_err();

    assert!(matches!(refused, ReloadError::External { companion, .. } if companion.as_str() == "zed"));
    assert!(!memberships.companions().contains_key(&CompanionId::from("zed")));
}

#[test]
fn a_thread_is_with_minors_if_its_channel_is_also_after_it_was_changed_itself() {
    let memberships = memberships(&[("aria", &[])]);
    let adult = samples::companion(json!({ "id": "velvet", "adult": true }), samples::defaults());
    memberships.reload_companions([("velvet".into(), adult)].into()).unwrap();
    let channel = membership("home", &["velvet"]);
    let thread = Membership { within: Some("one".into()), stands_alone: true, ..channel.clone() };
    memberships.put(&"thread".into(), thread).unwrap();

    memberships.put(&"one".into(), channel.clone()).unwrap();
    let before = memberships.present(&"thread".into()).len();
    memberships.put(&"one".into(), Membership { minors: true, ..channel }).unwrap();

    assert!(memberships.has_minors(&"thread".into()));
    assert_eq!((before, memberships.present(&"thread".into()).len()), (1, 0));
    assert_eq!(memberships.has_members(&"thread".into()), Some(false));
}

/// Whether two guilds share their name matcher.
fn share(memberships: &Memberships, one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|guild| memberships.names(&guild.into()).unwrap());
    Arc::ptr_eq(&one, &other)
}

fn memberships(companions: &[(&str, &[&str])]) -> Memberships {
    let defaults = samples::defaults().companion_defaults.clone();
    Memberships::new(cast(companions), defaults, CommonNames::Vocative, BTreeSet::new(), Instruments::noop())
}

fn with_external(id: &str, external: External) -> Membership {
    let mut membership = membership("home", &["aria", id]);
    membership.externals.insert(id.into(), external);
    membership
}

fn cast(companions: &[(&str, &[&str])]) -> CompanionSet {
    let companion = |(id, aliases): &(&str, &[&str])| {
        ((*id).into(), samples::companion(json!({ "id": id, "aliases": aliases }), samples::defaults()))
    };
    companions.iter().map(companion).collect()
}

fn membership(guild: &str, companions: &[&str]) -> Membership {
    Membership {
        companions: companions.iter().map(|id| CompanionId::from(*id)).collect(),
        ..Membership::empty(guild.into(), Moment::ZERO)
    }
}
