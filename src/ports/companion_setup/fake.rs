//! A fake setup of companions in memory. Configurations are stored as they are.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::super::backend::Detail;
use super::super::model_setup::Tried;
use super::*;
use crate::settings::samples;

/// The created companions, with their pictures and cards.
#[derive(Default)]
pub struct FakeCompanions(Mutex<BTreeMap<CompanionId, Made>>);

struct Made {
    changes: u32,
    fields: CompanionFields,
    picture: Option<Vec<u8>>,
    card: Option<Vec<u8>>,
}

impl Made {
    fn revision(&self) -> Revision {
        Revision(self.changes.to_string())
    }

    fn profile(&self, id: &CompanionId) -> CompanionProfile {
        let revision = self.revision();
        CompanionProfile {
            guild: None,
            id: id.clone(),
            picture: self.picture.is_some().then(|| format!("/pictures/{id}/{}", revision.0)),
            revision,
            kept: Kept::File { path: format!("config/companions/{id}.toml"), writable: true },
            companion: self.fields.clone(),
            persona_elsewhere: None,
            discord_picture: DiscordPicture::None,
            has_card: self.card.is_some(),
            rooms: Vec::new(),
            warnings: Vec::new(),
            warning_codes: Vec::new(),
        }
    }
}

impl FakeCompanions {
    fn with<T>(&self, id: &CompanionId, read: impl FnOnce(&mut Made) -> Result<T, Refused>) -> Result<T, Refused> {
        let mut made = self.0.lock();
        read(made.get_mut(id).ok_or_else(|| Refused::not_found(format!("there is no companion {id}")))?)
    }
}

#[async_trait]
impl CompanionSetup for FakeCompanions {
    async fn options(&self) -> Result<CompanionOptions, Refused> {
        Ok(CompanionOptions {
            kept: Kept::File { path: "config/companions".to_owned(), writable: true },
            models: vec!["main".into()],
            voices: Vec::new(),
            common_names: BTreeSet::from(["will"]),
            decides_together: false,
            defaults: DefaultFields {
                persona: "".into(),
                chattiness: "".into(),
                interjection: Interjection::Average,
                quiet_hours: QuietHours::Never,
            },
        })
    }

    async fn companion(&self, id: CompanionId) -> Result<CompanionProfile, Refused> {
        self.with(&id, |made| Ok(made.profile(&id)))
    }

    async fn create(&self, new: NewCompanion) -> Result<CompanionProfile, Refused> {
        let plain: String = new.companion.name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        let id = CompanionId::from(if plain.is_empty() { "companion".to_owned() } else { plain });
        configured(&id, &new.companion)?;
        let made = Made {
            changes: 1,
            fields: new.companion,
            picture: new.picture.map(|picture| picture.0),
            card: new.card.map(|card| card.0),
        };
        let profile = made.profile(&id);
        self.0.lock().insert(id, made);
        Ok(profile)
    }

    async fn change(&self, id: CompanionId, change: CompanionChange) -> Result<CompanionProfile, Refused> {
        self.with(&id, |made| {
            if change.revision != made.revision() {
                return Err(Refused::conflict("somebody else has changed it".to_owned()));
            }
            configured(&id, &change.companion)?;
            made.changes += 1;
            made.fields = change.companion;
            match change.picture {
                Override::Keep => {}
                Override::Reset => made.picture = None,
                Override::Set(picture) => made.picture = Some(picture.0),
            }
            Ok(made.profile(&id))
        })
    }

    async fn delete(&self, id: CompanionId, revision: Revision) -> Result<(), Refused> {
        self.with(&id, |made| match revision == made.revision() {
            true => Ok(()),
            false => Err(Refused::conflict("somebody else has changed it".to_owned())),
        })?;
        self.0.lock().remove(&id);
        Ok(())
    }

    async fn try_out(&self, trial: CompanionTrial) -> Result<Trial, Refused> {
        let tried = Tried {
            model: "rehearsal".into(),
            works: true,
            adaptations: Vec::new(),
            error: None,
            detail: format!("{} says hello", trial.companion.name),
            secs: 0.1,
            input_tokens: 1,
            output_tokens: 1,
            cost: None,
        };
        Ok(Trial { decision: tried.clone(), statement: tried })
    }

    async fn picture(&self, id: CompanionId, hash: String, _size: Option<u32>) -> Result<Vec<u8>, Refused> {
        let none = || Refused::not_found(format!("{id} has no such picture"));
        self.with(&id, |made| made.picture.clone().filter(|_| hash == made.revision().0).ok_or_else(none))
    }

    async fn exported(&self, id: CompanionId) -> Result<Exported, Refused> {
        self.with(&id, |made| {
            let companion = configured(&id, &made.fields)?;
            Ok(Exported { companion, picture: made.picture.clone(), card: made.card.clone() })
        })
    }
}

/// The companion with these fields.
///
/// # Errors
/// Returns an error if the fields are invalid.
fn configured(id: &CompanionId, fields: &CompanionFields) -> Result<Companion, Refused> {
    let fields = fields.clone();
    let file = CompanionFile {
        name: Some(fields.name),
        aliases: Some(fields.aliases),
        persona: fields.persona,
        chattiness: fields.chattiness,
        interjection: fields.interjection,
        tone: fields.tone,
        about: fields.about,
        quiet_hours: fields.quiet_hours,
        starts_after: fields.starts_after,
        picture: fields.picture_url,
        greetings: Some(fields.greetings),
        ..CompanionFile::default()
    };
    Companion::from_file(file, Some(id.as_str()), &samples::defaults().companion_defaults).map_err(|problems| {
        let problem = problems.into_iter().next().expect("why it is refused");
        Refused::invalid(format!("companion.{}", problem.key), Detail::from(problem.message).with(problem.code))
    })
}
