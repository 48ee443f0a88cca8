//! The stored form of a companion: its file or its record, its picture and its card.

use std::path::PathBuf;

use serde_json::json;

use super::Setup;
use super::fields::fields_of;
use crate::actors::companion::pictures::hash;
use crate::domain::id::CompanionId;
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::journal::record::CompanionRecord;
use crate::ports::backend::{Detail, Refused};
use crate::ports::companion_setup::{CompanionFields, Kept, Revision};
use crate::settings::companion::CompanionFile;
use crate::settings::companion::written::{NewValue, edited};
use crate::settings::roster::files::{Form, Found};

/// The stored form of a companion.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) id: CompanionId,
    /// The companion's files. They are not used if there is a record.
    pub(super) found: Option<Found>,
    /// Whether the server may write the files.
    pub(super) is_writable: bool,
    pub(super) record: Option<CompanionRecord>,
    pub(super) picture: Option<Vec<u8>>,
    pub(super) card: Option<Vec<u8>>,
}

impl Setup {
    /// The stored form of a companion. `None`: no companion has this id.
    pub(super) async fn written(&self, id: &CompanionId) -> Result<Option<Written>, Refused> {
        let (files, of) = (self.files.clone(), id.clone());
        let read = move || {
            let found = files.find(&of);
            let is_writable = found.as_ref().is_ok_and(|found| files.is_writable(found.as_ref()));
            (found, is_writable)
        };
        let (found, is_writable) = super::reading(read).await?;
        let reader = Reader::new(&*self.context.store);
        let record = match reader.companions().await?.remove(id) {
            Some(Ok(record)) => Some(record),
            Some(Err(error)) => {
                let detail = format!("the companion {id} in the store cannot be read: {error}; restore a backup");
                return Err(Refused::Damaged(Detail::from(detail).coded("refusals.data_damaged", json!({}))));
            }
            None => None,
        };
        let found = match (found, &record) {
            (Ok(found), _) => found,
            // The file is not used anyway.
            (Err(_), Some(_)) => None,
            (Err(error), None) => return Err(broken(&error)),
        };
        if found.is_none() && record.is_none() {
            return Ok(None);
        }
        let (picture, card) = (reader.bytes(key::picture(id)).await?, reader.bytes(key::card(id)).await?);
        Ok(Some(Written { id: id.clone(), found, is_writable, record, picture, card }))
    }

    /// Where the companion is stored.
    pub(super) fn kept(&self, written: &Written) -> Kept {
        let path = |found: &Found| found.path.display().to_string();
        match (&written.record, &written.found) {
            (Some(record), found) => Kept::Store {
                why: record.why.to_string(),
                instead_of: found.as_ref().map(|found| match found.form {
                    Form::BuiltIn => "the built-in companion".to_owned(),
                    Form::File | Form::Folder => path(found),
                }),
            },
            (None, Some(found)) if found.form != Form::BuiltIn => Kept::File { path: path(found), writable: written.is_writable },
            (None, _) => Kept::BuiltIn { path: self.files.folder().display().to_string() },
        }
    }
}

impl Written {
    /// The text of its record if there is one, otherwise of its file.
    pub(super) fn text(&self) -> &str {
        let found = || self.found.as_ref().map_or("", |found| &found.text);
        self.record.as_ref().map_or_else(found, |record| &record.text)
    }

    /// The persona files in use.
    pub(super) fn personas(&self) -> &[(PathBuf, String)] {
        self.found.as_ref().filter(|_| self.record.is_none()).map_or(&[], |found| &found.personas)
    }

    /// The text of its persona files, if it has any.
    pub(super) fn persona(&self) -> Option<String> {
        let texts: Vec<_> = self.personas().iter().map(|(_, text)| text.trim()).filter(|text| !text.is_empty()).collect();
        (!self.personas().is_empty()).then(|| texts.join("\n\n"))
    }

    /// The contents of a single file with the persona of all files.
    pub(super) fn whole_text(&self) -> Result<String, Refused> {
        match self.persona() {
            None => Ok(self.text().to_owned()),
            Some(persona) => {
                edited(self.text(), &[("persona", Some(NewValue::Text(persona.into())))]).map_err(|error| broken(&error))
            }
        }
    }

    /// The configuration that people wrote.
    pub(super) fn fields(&self) -> Result<CompanionFields, Refused> {
        let mut file = read(self.text())?;
        if let Some(persona) = self.persona() {
            file.persona = Some(persona.into());
        }
        Ok(fields_of(file, &self.id))
    }

    /// Why the persona cannot be changed here. `None`: it can be changed.
    pub(super) fn persona_elsewhere(&self) -> Option<String> {
        let paths: Vec<_> = self.personas().iter().map(|(path, _)| path.display().to_string()).collect();
        (paths.len() > 1).then(|| format!("Its persona is in {}; change it there.", paths.join(" and ")))
    }

    pub(super) fn revision(&self) -> Revision {
        let mut parts: Vec<&[u8]> = vec![self.text().as_bytes()];
        parts.extend(self.personas().iter().map(|(_, text)| text.as_bytes()));
        let kept = [&self.picture, &self.card].map(|bytes| hash(bytes.as_deref().unwrap_or_default()));
        parts.extend(kept.iter().map(String::as_bytes));
        // The length before each part makes the boundaries between parts unambiguous.
        let whole: Vec<u8> = parts.iter().flat_map(|part| [&part.len().to_be_bytes()[..], part].concat()).collect();
        Revision(hash(&whole))
    }
}

/// Parses a file. Its errors are reported as those of a broken file.
pub(super) fn read(text: &str) -> Result<CompanionFile, Refused> {
    toml::from_str(text).map_err(|error: toml::de::Error| broken(error.message()))
}

fn broken(error: &str) -> Refused {
    Refused::conflict(Detail::of("refusals.file_errors", json!({ "error": error })))
}
