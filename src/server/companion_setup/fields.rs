//! Converts between the fields that people write and the keys of a companion's file.

use std::sync::Arc;

use crate::domain::id::CompanionId;
use crate::domain::model_role::ModelRole;
use crate::ports::backend::{Detail, Refused};
use crate::ports::companion_setup::CompanionFields;
use crate::settings::Problem;
use crate::settings::companion::written::{KeyChange, NewValue};
use crate::settings::companion::{CompanionFile, capitalised, with_plain_lines};

/// The fields in the file of a companion.
pub(super) fn fields_of(file: CompanionFile, id: &CompanionId) -> CompanionFields {
    let name = file.name.clone().unwrap_or_else(|| capitalised(id.as_str()).into());
    CompanionFields { name, ..file.into() }
}

/// Fields in normalised form: trimmed names, normalised line ends, and no values that equal a default.
pub(super) fn tidied(fields: CompanionFields) -> CompanionFields {
    let trimmed = |text: Arc<str>| if text.trim().len() == text.len() { text } else { text.trim().into() };
    CompanionFields {
        name: trimmed(fields.name),
        aliases: fields.aliases.into_iter().map(trimmed).collect(),
        persona: fields.persona.map(with_plain_lines),
        about: fields.about.map(trimmed),
        starts_after: fields.starts_after.filter(|silence| *silence != 0.0),
        model: fields.model.filter(|model| *model != ModelRole::Main.into()),
        greetings: fields.greetings.into_iter().map(with_plain_lines).collect(),
        ..fields
    }
}

/// The keys of a file whose values differ from these fields.
pub(super) fn changes(now: &CompanionFields, new: &CompanionFields) -> Vec<KeyChange> {
    let text = |text: &Option<Arc<str>>| text.clone().map(NewValue::Text);
    let texts = |texts: &[Arc<str>]| (!texts.is_empty()).then(|| NewValue::Texts(texts.to_vec()));
    let number = |number: Option<f64>| number.map(NewValue::Number);
    let values = |fields: &CompanionFields| -> [KeyChange; 16] {
        [
            ("name", Some(NewValue::Text(fields.name.clone()))),
            ("aliases", texts(&fields.aliases)),
            ("persona", text(&fields.persona)),
            ("chattiness", text(&fields.chattiness)),
            ("interjection", fields.interjection.map(|level| NewValue::Text(level.as_str().into()))),
            ("tone", text(&fields.tone)),
            ("about", text(&fields.about)),
            ("quiet_hours", fields.quiet_hours.map(|hours| NewValue::Text(hours.to_string().into()))),
            ("starts_after", number(fields.starts_after)),
            ("adult", fields.adult.then_some(NewValue::Bool(true))),
            ("picture", text(&fields.picture_url)),
            ("greetings", texts(&fields.greetings)),
            ("model.main", fields.model.as_ref().map(|model| NewValue::Text(model.as_str().into()))),
            ("voice.provider", text(&fields.voice.provider)),
            ("voice.voice", text(&fields.voice.voice)),
            ("voice.speed", number(fields.voice.speed)),
        ]
    };
    values(now).into_iter().zip(values(new)).filter(|(now, new)| now != new).map(|(_, new)| new).collect()
}

/// The error of a key, named by the field from which the key was written.
pub(super) fn refused(problem: Problem) -> Refused {
    let Problem { key, message, code } = problem;
    let field = match key.as_str() {
        "picture" => "picture_url",
        "model.main" | "model.side" => "model",
        "id" => "name",
        key => key,
    };
    Refused::invalid(format!("companion.{field}"), Detail::from(message).with(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::policy::interjection::Interjection;
    use crate::domain::policy::quiet_hours::QuietHours;
    use crate::ports::companion_setup::VoiceFields;
    use crate::settings::companion::written::edited;

    #[test]
    fn fields_that_are_written_are_read_back() {
        let fields = CompanionFields {
            name: "Mira".into(),
            aliases: vec!["Mi".into()],
            persona: Some("A poet.\nShe is \"dry\".".into()),
            chattiness: Some("shy".into()),
            interjection: Some(Interjection::VeryQuiet),
            tone: Some("dry".into()),
            about: Some("She mends verses.".into()),
            quiet_hours: Some(QuietHours::Between { from: 23 * 60, until: 8 * 60 }),
            starts_after: Some(90.5),
            adult: true,
            model: Some("large".into()),
            voice: VoiceFields { provider: Some("a".into()), voice: Some("b".into()), speed: Some(1.25) },
            picture_url: Some("https://example.org/m.png".into()),
            greetings: vec!["Hello!".into(), "Hm?\nYou?".into()],
        };
        let id = "mira".into();

        let text = edited("", &changes(&CompanionFields::default(), &fields)).unwrap();

        let read = |text: &str| fields_of(toml::from_str(text).unwrap(), &id);
        assert_eq!(read(&text), fields);
        let bare = CompanionFields { name: "Mira".into(), ..CompanionFields::default() };
        let text = edited(&text, &changes(&fields, &bare)).unwrap();
        assert_eq!((read(&text), text.as_str()), (bare.clone(), "name = \"Mira\"\n"));
        assert_eq!(changes(&bare, &bare), []);
    }
}
