use super::*;
use crate::domain::moment::Moment;
use crate::settings::Settings;

#[test]
fn a_companion_lives_in_a_guild_as_long_as_it_lives_in_one_of_its_channels() {
    let residents = residents(&[("aria", &["ari"]), ("bruno", &[])]);
    residents.put(&"one".into(), residence("home", &["aria"])).unwrap();
    residents.put(&"two".into(), residence("home", &["aria", "bruno"])).unwrap();

    residents.take(&"one".into());
    assert!(residents.lives_in(&"home".into(), "aria"));

    residents.put(&"two".into(), residence("home", &["bruno"])).unwrap();
    assert!(!residents.lives_in(&"home".into(), "aria"));
    assert!(residents.lives_in(&"home".into(), "bruno"));
    assert!(!residents.lives_in(&"away".into(), "bruno"));
    assert_eq!(residents.names(&"home".into()).unwrap().find("ari and bruno"), ["bruno".into()]);
}

#[test]
fn two_who_share_a_name_cannot_live_in_one_guild_and_nothing_changes() {
    let residents = residents(&[("aria", &["ari"]), ("ariel", &["Ari"])]);
    residents.put(&"one".into(), residence("home", &["aria"])).unwrap();
    residents.put(&"far".into(), residence("away", &["ariel"])).unwrap();

    let shared = residents.put(&"two".into(), residence("home", &["ariel"])).unwrap_err();

    assert_eq!((shared.first.as_str(), shared.second.as_str()), ("aria", "ariel"));
    assert_eq!(residents.get(&"two".into()), None);
    assert!(!residents.lives_in(&"home".into(), "ariel"));
}

#[test]
fn a_new_cast_that_would_share_a_name_is_not_taken() {
    let residents = residents(&[("aria", &[]), ("bruno", &[])]);
    residents.put(&"one".into(), residence("home", &["aria", "bruno"])).unwrap();
    let edition = residents.edition();

    residents.recast(cast(&[("aria", &["ari"]), ("bruno", &["ari"])])).unwrap_err();
    assert_eq!(residents.cast()[&CompanionId::from("aria")].aliases.len(), 0);

    residents.recast(cast(&[("aria", &["ari"]), ("bruno", &[])])).unwrap();
    assert_eq!(residents.names(&"home".into()).unwrap().find("ari?"), ["aria".into()]);
    assert_ne!(residents.edition(), edition);
}

#[test]
fn guilds_with_the_same_companions_share_what_looks_for_their_names() {
    let residents = residents(&[("aria", &["ari"]), ("bruno", &[])]);
    residents.put(&"one".into(), residence("home", &["aria", "bruno"])).unwrap();
    residents.put(&"two".into(), residence("away", &["aria"])).unwrap();
    assert!(!share(&residents, "home", "away"));

    residents.put(&"three".into(), residence("away", &["bruno"])).unwrap();
    assert!(share(&residents, "home", "away"));

    residents.recast(cast(&[("aria", &["aria mia"]), ("bruno", &[])])).unwrap();
    assert!(share(&residents, "home", "away"));
    assert_eq!(residents.names(&"away".into()).unwrap().find("aria mia, not ari"), ["aria".into()]);
    assert_eq!(residents.names(&"away".into()).unwrap().find("ari"), []);
}

#[test]
fn a_guild_whose_companions_change_has_its_own_names_and_leaves_the_others_theirs() {
    let residents = residents(&[("aria", &[]), ("bruno", &[])]);
    residents.put(&"one".into(), residence("home", &["aria", "bruno"])).unwrap();
    residents.put(&"two".into(), residence("away", &["aria", "bruno"])).unwrap();
    let found = |guild: &str| residents.names(&guild.into()).unwrap().find("aria, bruno and zed").len();

    residents.put(&"two".into(), residence("away", &["aria"])).unwrap();
    assert!(!share(&residents, "home", "away"));
    assert_eq!((found("home"), found("away")), (2, 1));

    residents.take(&"one".into());
    residents.put(&"one".into(), with_external("zed", External::default())).unwrap();
    assert!(!share(&residents, "home", "away"));
    assert_eq!((found("home"), found("away")), (2, 1), "aria and zed, and aria");
}

#[test]
fn guilds_in_which_programs_outside_play_the_same_companion_under_other_names_share_nothing() {
    let residents = residents(&[("aria", &[])]);
    let of = |guild: &str, name: &str| {
        let zed = External { name: Some(name.into()), aliases: Vec::new() };
        Residence { guild: guild.into(), ..with_external("zed", zed) }
    };
    residents.put(&"one".into(), of("home", "Zoltan")).unwrap();
    residents.put(&"two".into(), of("away", "Zora")).unwrap();

    assert!(!share(&residents, "home", "away"));
    assert_eq!(residents.names(&"home".into()).unwrap().find("zora and zoltan"), ["zed".into()]);
    assert_eq!(residents.names(&"away".into()).unwrap().find("zoltan"), []);
}

#[test]
fn names_that_no_guild_has_any_more_are_forgotten() {
    let ids: Vec<_> = (0..40).map(|number| format!("c{number}")).collect();
    let named: Vec<(&str, &[&str])> = ids.iter().map(|id| (id.as_str(), [].as_slice())).collect();
    let residents = residents(&named);

    for id in &ids {
        residents.put(&"one".into(), residence("home", &[id])).unwrap();
    }

    let known = residents.read().automata.known.len();
    assert!(known < 10, "{known} are known");
}

#[test]
fn an_external_companion_lives_under_its_names_and_is_what_the_defaults_say() {
    let residents = residents(&[("aria", &["ari"])]);
    let zed = External { name: None, aliases: vec!["zeddy".into()] };

    residents.put(&"one".into(), with_external("zed", zed.clone())).unwrap();

    assert!(residents.lives_in(&"home".into(), "zed"));
    assert_eq!(residents.names(&"home".into()).unwrap().find("ari and zeddy"), ["aria".into(), "zed".into()]);
    assert_eq!(residents.tempers(&"one".into()).len(), 2);
    assert!(residents.present(&"one".into())[&CompanionId::from("zed")]);
    assert_eq!(&*residents.companion(&"one".into(), &"zed".into()).unwrap().name, "Zed");
    assert_eq!(residents.companion(&"two".into(), &"zed".into()), None);
}

#[test]
fn an_external_companion_shares_no_name_with_anybody_in_any_room_of_its_guild() {
    let residents = residents(&[("aria", &["ari"])]);
    residents.put(&"one".into(), residence("home", &["aria"])).unwrap();
    let named = |name: &str| External { name: Some(name.into()), aliases: Vec::new() };
    residents.put(&"two".into(), with_external("zed", named("Zed"))).unwrap();

    residents.put(&"two".into(), with_external("zed", named("ARI"))).unwrap_err();
    residents.put(&"two".into(), with_external("zed", named("Zoltan"))).unwrap();

    assert_eq!(residents.names(&"home".into()).unwrap().find("zoltan"), ["zed".into()]);
    residents.put(&"two".into(), residence("home", &["aria"])).unwrap();
    assert_eq!(residents.names(&"home".into()).unwrap().find("zoltan"), []);
    assert!(!residents.lives_in(&"home".into(), "zed"));
}

#[test]
fn a_companion_that_is_played_from_outside_is_not_configured_besides() {
    let residents = residents(&[("aria", &[])]);
    residents.put(&"one".into(), with_external("zed", External::default())).unwrap();

    let refused = residents.recast(cast(&[("aria", &[]), ("zed", &[])])).unwrap_err();

    assert!(matches!(refused, Miscast::External { companion, .. } if companion.as_str() == "zed"));
    assert!(!residents.cast().contains_key(&CompanionId::from("zed")));
}

/// Whether what looks for names is the same in two guilds.
fn share(residents: &Residents, one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|guild| residents.names(&guild.into()).unwrap());
    Arc::ptr_eq(&one, &other)
}

fn residents(companions: &[(&str, &[&str])]) -> Residents {
    let defaults = Settings::overlay(serde_json::json!({})).unwrap().companion_defaults;
    Residents::new(cast(companions), defaults, Instruments::unread())
}

fn with_external(id: &str, external: External) -> Residence {
    let mut residence = residence("home", &["aria", id]);
    residence.externals.insert(id.into(), external);
    residence
}

fn cast(companions: &[(&str, &[&str])]) -> Cast {
    let defaults = Settings::overlay(serde_json::json!({})).unwrap().companion_defaults;
    let companion = |(id, aliases): &(&str, &[&str])| {
        let aliases = aliases.iter().map(|alias| Arc::from(*alias)).collect();
        let file = CompanionFile { id: Some((*id).into()), aliases: Some(aliases), ..CompanionFile::default() };
        (CompanionId::from(*id), Companion::from_file(file, None, &defaults).unwrap())
    };
    companions.iter().map(companion).collect()
}

fn residence(guild: &str, companions: &[&str]) -> Residence {
    Residence {
        companions: companions.iter().map(|id| CompanionId::from(*id)).collect(),
        ..Residence::empty(guild.into(), Moment::ZERO)
    }
}
