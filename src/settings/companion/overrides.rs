//! Overrides: values that are changed at run time for one companion in one guild or channel.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Interjection, QuietHours};
use crate::domain::id::ModelName;
use crate::domain::model_role::ModelRole;

/// A change of one override.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Override<T> {
    /// Keep the current override: the field is absent.
    #[default]
    Keep,
    /// Remove the override, so that the configured value applies: the field is `null`.
    Reset,
    /// Set the override to this value.
    Set(T),
}

impl<T> Override<T> {
    pub fn apply(self, value: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Reset => *value = None,
            Self::Set(new) => *value = Some(new),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Override<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Reset, Self::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Override<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// Declares the overridable values once: the struct with the overrides, and the struct with a change of them.
macro_rules! overrides {
    (
        $(#[$of_overrides:meta])* $Overrides:ident,
        $(#[$of_patch:meta])* $Patch:ident,
        $($(#[$of_field:meta])* $field:ident: $type:ty,)+
        $(=> $nested:ident: $Nested:ident, $NestedPatch:ident)?
    ) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        $(#[$of_overrides])*
        #[serde(default, deny_unknown_fields)]
        pub struct $Overrides {
            $($(#[$of_field])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)+
            $(#[serde(skip_serializing_if = "is_default")] pub $nested: $Nested,)?
        }

        #[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
        $(#[$of_patch])*
        #[serde(default, deny_unknown_fields)]
        pub struct $Patch {
            $($(#[$of_field])* pub $field: Override<$type>,)+
            $(pub $nested: Override<$NestedPatch>,)?
        }

        impl $Patch {
            pub fn apply(self, overrides: &mut $Overrides) {
                $(self.$field.apply(&mut overrides.$field);)+
                $(match self.$nested {
                    Override::Keep => {}
                    Override::Reset => overrides.$nested = $Nested::default(),
                    Override::Set(patch) => patch.apply(&mut overrides.$nested),
                })?
            }
        }
    };
}

overrides! {
    /// The overrides of one companion in one room. Each replaces the value of this name in [`Companion`](super::Companion).
    /// Absent values stay as configured.
    Overrides,
    /// A change of one companion's overrides in one room.
    #[serde(expecting = "an object of what is to change, such as {\"interjection\": \"quiet\"}")]
    CompanionPatch,
    /// How it likes to talk, in words; part of its prompts.
    chattiness: Arc<str>,
    interjection: Interjection,
    /// Seconds of quiet that make a lull in a text channel, 0 to 86,400.
    text_lull_timeout: f64,
    /// The same in a voice channel.
    voice_lull_timeout: f64,
    /// When it speaks only when spoken to: `never`, `always`, or hours such as `23:00-08:00`.
    quiet_hours: QuietHours,
    /// Seconds of silence after which it may start a conversation, 60 to 604,800; 0 means never.
    starts_after: f64,
    /// The number of its own statements after which it ends a conversation, 1 to 1,000,000.
    max_turns: u32,
    /// Whether its statements are judged for repetition.
    repetition: bool,
    /// Whether it reads messages but stays silent (docs/design/gate.md G-21).
    paused: bool,
    => model: ModelOverrides, ModelPatch
}

overrides! {
    /// The models that a companion uses in one room instead of its own, by name. A model that no longer exists counts as the role's own.
    ModelOverrides,
    /// A change of these models.
    #[serde(expecting = "an object with the names of models, such as {\"side\": \"main\"}")]
    ModelPatch,
    main: ModelName,
    side: ModelName,
}

impl ModelOverrides {
    /// The models of the overridden roles.
    pub fn chosen(&self) -> impl Iterator<Item = (ModelRole, &ModelName)> {
        let main = self.main.iter().map(|name| (ModelRole::Main, name));
        main.chain(self.side.iter().map(|name| (ModelRole::Side, name)))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
