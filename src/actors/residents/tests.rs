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
